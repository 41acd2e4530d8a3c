//! LMDeploy: vLLM-like names of its own, totals of some requests as gauges.

use super::Page;
use super::text::{PythonClient, Text};

pub(super) fn render(page: &Page<'_>) -> String {
    let labels = [("engine", "0"), ("model_name", page.model)];
    let mut client = PythonClient { text: Text::default(), labels: &labels, created: None };
    let (stats, counters) = (page.stats, &page.stats.counters);
    client.process(page.started);
    client.text.family("lmdeploy:backend_config_info", "gauge", "information of backend_config");
    client.text.sample("lmdeploy:backend_config_info", &[], 1.0);
    let routed = "Number of requests routed to request handles.";
    let api_waiting = "Number of requests waiting for free request handles.";
    let hit_rate = "Prefix-cache hit rate. 1 means 100 percent of queried prefix tokens hit.";
    for (name, help, value) in [
        ("num_requests_succeeded", "Number of current succeeded requests.", counters.finished as f64),
        ("num_requests_failed", "Number of current failed requests.", 0.0),
        ("num_api_requests_routed", routed, (stats.running + stats.waiting) as f64),
        ("num_api_requests_waiting", api_waiting, 0.0),
        ("num_requests_running", "Number of requests in model execution batches.", stats.running as f64),
        ("num_requests_waiting", "Number of requests waiting to be processed.", stats.waiting as f64),
        ("gpu_cache_usage_perc", "GPU KV-cache usage. 1 means 100 percent usage.", stats.kv_usage),
        ("prefix_cache_hit_rate", hit_rate, page.hit_rate()),
    ] {
        client.gauge(&format!("lmdeploy:{name}"), help, value);
    }
    client.counter("lmdeploy:prompt_tokens", "Number of prefill tokens processed.", counters.prompt_tokens);
    client.counter("lmdeploy:generation_tokens", "Number of generation tokens processed.", counters.generation_tokens);
    client.counter("lmdeploy:cached_tokens", "Total prefix-cached input tokens served.", counters.prefix_hits);
    let seen = page.histograms;
    for (name, help, histogram) in [
        ("request_prompt_tokens", "Number of prefill tokens processed.", &seen.prompt_tokens),
        ("request_generation_tokens", "Number of generation tokens processed.", &seen.generation_tokens),
        ("time_to_first_token_seconds", "Histogram of time to first token in seconds.", &seen.ttft),
        ("time_per_output_token_seconds", "Histogram of time per output token in seconds.", &seen.per_output_token),
        ("e2e_request_latency_seconds", "Histogram of e2e request latency in seconds.", &seen.e2e),
        ("request_queue_time_seconds", "Histogram of time spent in WAITING phase for request.", &seen.queue),
        ("request_inference_time_seconds", "Histogram of time spent in RUNNING phase for request.", &seen.inference),
        ("request_prefill_time_seconds", "Histogram of time spent in PREFILL phase for request.", &seen.prefill),
        ("request_decode_time_seconds", "Histogram of time spent in DECODE phase for request.", &seen.decode),
    ] {
        client.histogram(&format!("lmdeploy:{name}"), help, histogram);
    }
    client.text.out
}
