//! `trtllm-serve`. Its gauges have no sample before the first step's statistics.

use super::Page;
use super::text::{PythonClient, Text};

pub(super) fn render(page: &Page<'_>) -> String {
    let labels = [("engine_type", "trtllm"), ("model_name", page.model)];
    let mut client = PythonClient { text: Text::default(), labels: &labels, created: Some(page.started) };
    let (stats, config) = (page.stats, page.config);
    client.process(page.started);
    client.labelled(
        "trtllm_request_success",
        "counter",
        "Count of successfully processed requests.",
        "finished_reason",
        &[("length", stats.counters.finished as f64)],
    );
    let ttft = "Histogram of time to first token in seconds.";
    client.histogram("trtllm_time_to_first_token_seconds", ttft, &page.histograms.ttft);
    let slots = config.max_num_seqs as f64;
    for (name, help, value) in [
        ("kv_cache_hit_rate", "KV cache hit rate", page.hit_rate()),
        ("kv_cache_utilization", "KV cache utilization", stats.kv_usage),
        ("kv_cache_host_utilization", "KV cache host (secondary) pool utilization", 0.0),
        ("num_requests_running", "Number of active requests", stats.running as f64),
        ("num_requests_waiting", "Number of queued requests", stats.waiting as f64),
        ("max_num_active_requests", "Maximum number of active requests", slots),
        ("max_batch_size_static", "Static maximum batch size", slots),
        ("kv_cache_max_blocks", "Maximum number of KV cache blocks", f64::from(config.num_gpu_blocks)),
        ("kv_cache_free_blocks", "Number of free KV cache blocks", f64::from(page.free_blocks())),
        ("kv_cache_used_blocks", "Number of used KV cache blocks", f64::from(stats.kv_blocks_used)),
        ("kv_cache_tokens_per_block", "Number of tokens per KV cache block", f64::from(config.block_size)),
        ("num_scheduled_requests", "Number of scheduled requests", stats.running as f64),
    ] {
        let name = format!("trtllm_{name}");
        if stats.counters.steps > 0 {
            client.gauge(&name, help, value);
        } else {
            client.text.family(&name, "gauge", help);
        }
    }
    client.text.out
}
