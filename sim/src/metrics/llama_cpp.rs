//! llama.cpp: no labels, integers without a point, no KV gauge.

use super::Page;
use super::text::Text;

pub(super) fn render(page: &Page<'_>) -> String {
    let counters = &page.stats.counters;
    let computed = counters.prompt_tokens.saturating_sub(counters.prefix_hits);
    let draft = "Speculative: Total draft tokens generated";
    let accepted = "Speculative: Total draft tokens accepted by the target model";
    let calls = "Total number of llama_decode() calls, excluding speculative decoding and multimodal decoding";
    let busy = "Average number of busy slots per llama_decode() call";
    let mut text = Text::default();
    for (name, kind, help, value) in [
        ("prompt_tokens_total", "counter", "Number of prompt tokens processed, excluding cached tokens", computed),
        (
            "prompt_tokens_cached_total",
            "counter",
            "Number of prompt tokens reused from the cache",
            counters.prefix_hits,
        ),
        ("prompt_seconds_total", "counter", "Total time spent processing prompts", 0),
        ("tokens_predicted_total", "counter", "Number of generation tokens processed", counters.generation_tokens),
        ("tokens_predicted_seconds_total", "counter", "Total time spent generating tokens", 0),
        ("n_decode_total", "counter", calls, counters.steps),
        ("n_tokens_max", "counter", "Largest observed sequence length (prompt + generation)", 0),
        ("spec_decode_num_draft_tokens_total", "counter", draft, 0),
        ("spec_decode_num_accepted_tokens_total", "counter", accepted, 0),
        ("prompt_tokens_seconds", "gauge", "Average prompt throughput in tokens/s", 0),
        ("predicted_tokens_seconds", "gauge", "Average generation throughput in tokens/s", 0),
        ("requests_processing", "gauge", "Number of requests processing", page.stats.running as u64),
        ("requests_deferred", "gauge", "Number of requests deferred", page.stats.waiting as u64),
        ("n_busy_slots_per_decode", "gauge", busy, page.stats.running as u64),
    ] {
        let name = format!("llamacpp:{name}");
        text.family(&name, kind, help);
        text.raw_sample(&name, &[], &value.to_string());
    }
    text.out
}
