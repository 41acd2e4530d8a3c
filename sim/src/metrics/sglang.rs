//! SGLang 0.5: Python's client in multi-process mode, hence no `_created`; a page is as large as the block size.

use super::Page;
use super::text::{PythonClient, Text};

pub(super) fn render(page: &Page<'_>) -> String {
    let labels = [
        ("engine_type", "unified"),
        ("model_name", page.model),
        ("moe_ep_rank", "0"),
        ("pp_rank", "0"),
        ("tp_rank", "0"),
    ];
    let mut client = PythonClient { text: Text::default(), labels: &labels, created: None };
    let (stats, config) = (page.stats, page.config);
    let tokens = |blocks: u32| f64::from(blocks) * f64::from(config.block_size);
    let usage = stats.kv_usage;
    let loras = (stats.loras_resident as f64, config.max_loras as f64);
    let gauges = [
        ("max_total_num_tokens", "Maximum total number of tokens in the KV cache pool.", tokens(config.num_gpu_blocks)),
        ("weight_memory_usage_gb", "Memory used by model weights in GB.", 15.0),
        ("page_size", "KV cache page size in tokens.", f64::from(config.block_size)),
        ("num_pages", "Number of KV cache pages.", f64::from(config.num_gpu_blocks)),
        ("context_len", "Maximum context length.", f64::from(config.max_model_len)),
        ("num_running_reqs", "The number of running requests.", stats.running as f64),
        ("num_queue_reqs", "The number of requests in the waiting queue.", stats.waiting as f64),
        ("num_grammar_queue_reqs", "The number of requests in the grammar waiting queue.", 0.0),
        ("gen_throughput", "The generation throughput (token/s).", 0.0),
        ("cache_hit_rate", "The prefix cache hit rate.", page.hit_rate()),
        ("token_usage", "The token usage.", usage),
        ("full_token_usage", "The token usage for full attention layers.", usage),
        ("swa_token_usage", "The token usage for SWA layers.", 0.0),
        ("num_used_tokens", "The number of used tokens.", tokens(stats.kv_blocks_used)),
        ("kv_available_tokens", "Number of free token slots in the KV cache pool.", tokens(page.free_blocks())),
        (
            "spec_accept_length",
            "Mean acceptance length of speculative decoding (accepted drafts + bonus token per forward).",
            0.0,
        ),
        ("spec_accept_rate", "Speculative acceptance rate (`accepted drafts / proposed drafts` in batch).", 0.0),
        ("num_prefill_inflight_queue_reqs", "The number of requests in the prefill inflight queue.", 0.0),
        ("num_decode_transfer_queue_reqs", "The number of requests in the decode transfer queue.", 0.0),
        ("utilization", "The utilization.", 0.0),
        ("fwd_occupancy", "Forward pass GPU occupancy percentage.", f64::NAN),
        ("new_token_ratio", "The new token ratio.", 0.45),
        ("is_cuda_graph", "Whether the batch is using CUDA graph.", 1.0),
    ];
    for (name, help) in [
        ("sglang:num_retracted_reqs", "The number of retracted requests."),
        ("sglang:num_paused_reqs", "The number of paused requests by async weight sync."),
    ] {
        client.labelled(name, "gauge", help, "pid", &[("21384", 0.0)]);
    }
    for (name, help, value) in gauges {
        client.gauge(&format!("sglang:{name}"), help, value);
    }
    if config.max_loras > 0 {
        client.gauge(
            "sglang:lora_pool_slots_used",
            "Number of LoRA adapter slots currently occupied in GPU memory.",
            loras.0,
        );
        let total = "Total number of LoRA adapter slots available (max_loras_per_batch).";
        client.gauge("sglang:lora_pool_slots_total", total, loras.1);
        let use_ratio = "LoRA pool utilization ratio (used/total). 1.0 means pool is full.";
        client.gauge("sglang:lora_pool_utilization", use_ratio, loras.0 / loras.1);
    }
    let base = [("engine_type", "unified"), ("model_name", page.model)];
    client.labels = &base;
    client.counter("sglang:prompt_tokens", "Number of prefill tokens processed.", stats.counters.prompt_tokens);
    client.counter(
        "sglang:generation_tokens",
        "Number of generation tokens processed.",
        stats.counters.generation_tokens,
    );
    client.counter("sglang:num_requests", "Number of requests processed.", stats.counters.finished);
    let streaming = [("engine_type", "unified"), ("is_streaming", "true"), ("model_name", page.model)];
    client.labels = &streaming;
    let ttft = "Histogram of time to first token in seconds.";
    client.histogram("sglang:time_to_first_token_seconds", ttft, &page.histograms.ttft_coarse);
    client.labels = &base;
    client.histogram(
        "sglang:e2e_request_latency_seconds",
        "Histogram of End-to-end request latency in seconds",
        &page.histograms.e2e,
    );
    client.text.out
}
