//! vLLM 0.32.

use super::Page;
use super::histogram::{BLOCK_LIFE, FEW, HTTP_COARSE, HTTP_FINE, Histogram, PER_TOKEN, STEP_TOKENS, TOKENS};
use super::text::{PythonClient, Text};

pub(super) fn render(page: &Page<'_>) -> String {
    let labels = [("engine", "0"), ("model_name", page.model)];
    let mut client = PythonClient { text: Text::default(), labels: &labels, created: Some(page.started) };
    client.process(page.started);
    scheduler(&mut client, page);
    counters(&mut client, page);
    requests(&mut client, page);
    blocks(&mut client);
    if page.config.max_loras > 0 {
        page.loras.write(&mut client.text);
    }
    cache_config(&mut client.text, page);
    http(client.text, page).out
}

fn scheduler(client: &mut PythonClient<'_>, page: &Page<'_>) {
    let stats = page.stats;
    for (name, what) in [
        ("vllm:estimated_flops_per_gpu", "floating point operations per GPU"),
        ("vllm:estimated_read_bytes_per_gpu", "bytes read from memory per GPU"),
        ("vllm:estimated_write_bytes_per_gpu", "bytes written to memory per GPU"),
    ] {
        let help = format!("Estimated number of {what} (for Model Flops Utilization calculations).");
        client.counter(name, &help, 0);
    }
    running_and_waiting(client, page);
    client.labelled(
        "vllm:num_requests_waiting_by_reason",
        "gauge",
        "Number of waiting requests by reason. Reason labels: 'capacity' = waiting for scheduling capacity; 'deferred' = \
         deferred by transient constraints (LoRA budget, KV transfer, blocked status). Sum of all reasons equals \
         vllm:num_requests_waiting.",
        "reason",
        &[("capacity", stats.waiting as f64), ("deferred", 0.0)],
    );
    client.labelled(
        "vllm:engine_sleep_state",
        "gauge",
        "Engine sleep state; awake = 0 means engine is sleeping; awake = 1 means engine is awake; weights_offloaded = 1 \
         means sleep level 1; discard_all = 1 means sleep level 2.",
        "sleep_state",
        &[("awake", 1.0), ("weights_offloaded", 0.0), ("discard_all", 0.0)],
    );
    client.gauge("vllm:kv_cache_usage_perc", "KV-cache usage. 1 means 100 percent usage.", stats.kv_usage);
}

pub(super) fn running_and_waiting(client: &mut PythonClient<'_>, page: &Page<'_>) {
    let running = "Number of requests in model execution batches.";
    client.gauge("vllm:num_requests_running", running, page.stats.running as f64);
    client.gauge("vllm:num_requests_waiting", "Number of requests waiting to be processed.", page.stats.waiting as f64);
}

fn counters(client: &mut PythonClient<'_>, page: &Page<'_>) {
    let counters = &page.stats.counters;
    let external = "External prefix cache {} from KV connector cross-instance cache sharing, in terms of number of {}.";
    for (name, help, value) in [
        (
            "prefix_cache_queries",
            "Prefix cache queries, in terms of number of queried tokens.",
            counters.prefix_queries,
        ),
        ("prefix_cache_hits", "Prefix cache hits, in terms of number of cached tokens.", counters.prefix_hits),
        ("external_prefix_cache_queries", &external.replacen("{}", "queries", 1).replace("{}", "queried tokens"), 0),
        ("external_prefix_cache_hits", &external.replacen("{}", "hits", 1).replace("{}", "cached tokens"), 0),
        ("mm_cache_queries", "Multi-modal cache queries, in terms of number of queried items.", 0),
        ("mm_cache_hits", "Multi-modal cache hits, in terms of number of cached items.", 0),
        ("num_preemptions", "Cumulative number of preemption from the engine.", counters.preemptions),
        ("prompt_tokens", "Number of prefill tokens processed.", counters.prompt_tokens),
    ] {
        client.counter(&format!("vllm:{name}"), help, value);
    }
    let hits = counters.prefix_hits as f64;
    client.labelled(
        "vllm:prompt_tokens_by_source",
        "counter",
        "Number of prompt tokens by source.",
        "source",
        &[
            ("local_compute", (counters.prompt_tokens as f64 - hits).max(0.0)),
            ("local_cache_hit", hits),
            ("external_kv_transfer", 0.0),
        ],
    );
    let help = "Number of cached prompt tokens (local + external).";
    client.counter("vllm:prompt_tokens_cached", help, counters.prefix_hits);
    client.labelled(
        "vllm:prompt_tokens_cached_by_source",
        "counter",
        "Prefix-cache hit tokens by the cache tier that supplied them: device (local HBM), host (offloaded to DRAM), disk, \
         p2p (transferred from another vLLM instance) or external_unspecified. Counted at admission; sums to \
         vllm:prefix_cache_hits + vllm:external_prefix_cache_hits.",
        "source",
        &[("device", hits), ("host", 0.0), ("p2p", 0.0), ("disk", 0.0), ("external_unspecified", 0.0)],
    );
    client.counter("vllm:generation_tokens", "Number of generation tokens processed.", counters.generation_tokens);
    success(client, page, &["stop", "length", "abort", "error", "repetition"]);
    // The front counts these, and it knows no engine number.
    let labels = client.labels;
    client.labels = labels.get(1..).unwrap_or_default();
    client.labelled(
        "vllm:admission_rejections",
        "counter",
        "Number of admission attempts rejected by a queue limit, by reason.",
        "reason",
        &[("max_num_queued_reqs", 0.0), ("max_num_queued_tokens", 0.0)],
    );
    client.labels = labels;
}

pub(super) fn success(client: &mut PythonClient<'_>, page: &Page<'_>, reasons: &[&str]) {
    let finished = page.stats.counters.finished as f64;
    let values: Vec<_> = reasons.iter().map(|r| (*r, if *r == "length" { finished } else { 0.0 })).collect();
    let help = "Count of successfully processed requests.";
    client.labelled("vllm:request_success", "counter", help, "finished_reason", &values);
}

fn requests(client: &mut PythonClient<'_>, page: &Page<'_>) {
    tokens(client, page);
    let seen = page.histograms;
    latencies(client, page, &[("vllm:inter_token_latency_seconds", "Histogram of inter-token latency in seconds.")]);
    client.histogram(
        "vllm:request_time_per_output_token_seconds",
        "Histogram of time_per_output_token_seconds per request.",
        &seen.per_output_token,
    );
    phases(client, page);
    client.histogram(
        "vllm:request_num_preemptions",
        "Histogram of the number of times a request was preempted.",
        &seen.preemptions,
    );
    client.histogram(
        "vllm:request_prefill_kv_computed_tokens",
        "Histogram of new KV tokens computed during prefill (excluding cached tokens).",
        &seen.computed_tokens,
    );
}

pub(super) fn tokens(client: &mut PythonClient<'_>, page: &Page<'_>) {
    let seen = page.histograms;
    let most = "Histogram of maximum number of requested generation tokens.";
    for (name, help, histogram) in [
        ("request_prompt_tokens", "Number of prefill tokens processed.", &seen.prompt_tokens),
        ("request_generation_tokens", "Number of generation tokens processed.", &seen.generation_tokens),
        ("iteration_tokens_total", "Histogram of number of tokens per engine_step.", &Histogram::new(STEP_TOKENS)),
        ("request_max_num_generation_tokens", most, &seen.generation_tokens),
        ("request_params_n", "Histogram of the n request parameter.", &Histogram::new(FEW)),
        ("request_params_max_tokens", "Histogram of the max_tokens request parameter.", &Histogram::new(TOKENS)),
    ] {
        client.histogram(&format!("vllm:{name}"), help, histogram);
    }
}

/// Time to the first token, then what each version calls the time between tokens.
pub(super) fn latencies(client: &mut PythonClient<'_>, page: &Page<'_>, between: &[(&str, &str)]) {
    let help = "Histogram of time to first token in seconds.";
    client.histogram("vllm:time_to_first_token_seconds", help, &page.histograms.ttft);
    for (name, help) in between {
        client.histogram(name, help, &Histogram::new(PER_TOKEN));
    }
}

pub(super) fn phases(client: &mut PythonClient<'_>, page: &Page<'_>) {
    let seen = page.histograms;
    client.histogram("vllm:e2e_request_latency_seconds", "Histogram of e2e request latency in seconds.", &seen.e2e);
    for (name, phase, histogram) in [
        ("queue", "WAITING", &seen.queue),
        ("inference", "RUNNING", &seen.inference),
        ("prefill", "PREFILL", &seen.prefill),
        ("decode", "DECODE", &seen.decode),
    ] {
        let help = format!("Histogram of time spent in {phase} phase for request.");
        client.histogram(&format!("vllm:request_{name}_time_seconds"), &help, histogram);
    }
}

fn blocks(client: &mut PythonClient<'_>) {
    let sampled = "Sampled metrics (controlled by --kv-cache-metrics-sample).";
    for (name, help) in [
        ("lifetime", "Histogram of KV cache block lifetime from allocation to eviction."),
        ("idle_before_evict", "Histogram of idle time before KV cache block eviction."),
        (
            "reuse_gap",
            "Histogram of time gaps between consecutive KV cache block accesses. Only the most recent accesses are \
             recorded (ring buffer).",
        ),
    ] {
        let name = format!("vllm:kv_block_{name}_seconds");
        client.histogram(&name, &format!("{help} {sampled}"), &Histogram::new(BLOCK_LIFE));
    }
}

fn cache_config(text: &mut Text, page: &Page<'_>) {
    let config = page.config;
    let block_size = config.block_size.to_string();
    let blocks = config.num_gpu_blocks.to_string();
    let tokens = (u64::from(config.num_gpu_blocks) * u64::from(config.block_size)).to_string();
    let caching = if config.enable_prefix_caching { "True" } else { "False" };
    text.family("vllm:cache_config_info", "gauge", "Information of the LLMEngine CacheConfig");
    text.sample(
        "vllm:cache_config_info",
        &[
            ("_block_size_resolved", "True"),
            ("block_size", &block_size),
            ("cache_dtype", "auto"),
            ("cache_hit_alignment_tokens", "None"),
            ("effective_attention_block_size", &block_size),
            ("enable_mamba_shared_prefix_checkpoint", "False"),
            ("enable_prefix_caching", caching),
            ("engine", "0"),
            ("gpu_memory_utilization", "0.92"),
            ("hash_block_size", "None"),
            ("is_attention_free", "False"),
            ("kv_cache_dtype_skip_layers", "[]"),
            ("kv_cache_layout", "None"),
            ("kv_cache_memory_bytes", "None"),
            ("kv_cache_size_tokens", &tokens),
            ("kv_offloading_backend", "native"),
            ("kv_offloading_size", "None"),
            ("kv_sharing_fast_prefill", "False"),
            ("mamba_block_size", "None"),
            ("mamba_cache_dtype", "auto"),
            ("mamba_cache_mode", "none"),
            ("num_cpu_blocks", "None"),
            ("num_gpu_blocks", &blocks),
            ("num_gpu_blocks_override", "None"),
            ("prefix_caching_hash_algo", "sha256"),
            ("sliding_window", "None"),
            ("user_specified_block_size", "False"),
        ],
        1.0,
    );
}

/// The front's own families, which do not name the model.
fn http(text: Text, page: &Page<'_>) -> Text {
    let labels = [("handler", "/v1/chat/completions"), ("method", "POST")];
    let mut client = PythonClient { text, labels: &labels, created: Some(page.started) };
    let requests = "Total number of requests by method, status and handler.";
    let finished = page.stats.counters.finished as f64;
    client.labelled("http_requests", "counter", requests, "status", &[("2xx", finished)]);
    let few = "Latency with only few buckets by handler. Made to be only used if aggregation by handler is important. ";
    client.histogram("http_request_duration_seconds", few, &Histogram::new(HTTP_COARSE));
    client.labels = &[];
    let many = "Latency with many buckets but no API specific labels. Made for more accurate percentile calculations. ";
    client.histogram("http_request_duration_highr_seconds", many, &Histogram::new(HTTP_FINE));
    client.text
}
