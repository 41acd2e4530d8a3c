//! vLLM 0.8: the cache is "GPU cache", prefix hits are counted in blocks, no `engine` label on the configuration.

use super::text::{PythonClient, Text};
use super::{Page, vllm};

pub(super) fn render(page: &Page<'_>) -> String {
    let labels = [("engine", "0"), ("model_name", page.model)];
    let mut client = PythonClient { text: Text::default(), labels: &labels, created: Some(page.started) };
    let counters = &page.stats.counters;
    let in_blocks = |tokens: u64| tokens / u64::from(page.config.block_size);
    client.process(page.started);
    vllm::running_and_waiting(&mut client, page);
    client.gauge("vllm:gpu_cache_usage_perc", "GPU KV-cache usage. 1 means 100 percent usage.", page.stats.kv_usage);
    for (name, help, value) in [
        (
            "vllm:gpu_prefix_cache_queries",
            "GPU prefix cache queries, in terms of number of queried blocks.",
            in_blocks(counters.prefix_queries),
        ),
        (
            "vllm:gpu_prefix_cache_hits",
            "GPU prefix cache hits, in terms of number of cached blocks.",
            in_blocks(counters.prefix_hits),
        ),
        ("vllm:num_preemptions", "Cumulative number of preemption from the engine.", counters.preemptions),
        ("vllm:prompt_tokens", "Number of prefill tokens processed.", counters.prompt_tokens),
        ("vllm:generation_tokens", "Number of generation tokens processed.", counters.generation_tokens),
    ] {
        client.counter(name, help, value);
    }
    vllm::success(&mut client, page, &["stop", "length", "abort"]);
    vllm::tokens(&mut client, page);
    let per_token = "Histogram of time per output token in seconds.";
    vllm::latencies(&mut client, page, &[("vllm:time_per_output_token_seconds", per_token)]);
    vllm::phases(&mut client, page);
    page.loras.write(&mut client.text);
    cache_config(&mut client.text, page);
    client.text.out
}

fn cache_config(text: &mut Text, page: &Page<'_>) {
    let (block_size, blocks) = (page.config.block_size.to_string(), page.config.num_gpu_blocks.to_string());
    let caching = if page.config.enable_prefix_caching { "True" } else { "False" };
    text.family("vllm:cache_config_info", "gauge", "Information of the LLMEngine CacheConfig");
    text.sample(
        "vllm:cache_config_info",
        &[
            ("block_size", &block_size),
            ("cache_dtype", "auto"),
            ("calculate_kv_scales", "False"),
            ("cpu_kvcache_space_bytes", "None"),
            ("cpu_offload_gb", "0"),
            ("enable_prefix_caching", caching),
            ("gpu_memory_utilization", "0.9"),
            ("is_attention_free", "False"),
            ("num_cpu_blocks", "None"),
            ("num_gpu_blocks", &blocks),
            ("num_gpu_blocks_override", "None"),
            ("prefix_caching_hash_algo", "builtin"),
            ("sliding_window", "None"),
            ("swap_space", "4"),
            ("swap_space_bytes", "4294967296"),
        ],
        1.0,
    );
}
