//! Text Generation Inference, a Rust exporter: TYPE without HELP, no base labels, integers. It tells nothing of the
//! cache but the tokens its batch may grow to.

use std::fmt::Write;

use super::Page;

pub(super) fn render(page: &Page<'_>) -> String {
    let (stats, counters) = (page.stats, &page.stats.counters);
    let batch_tokens = u64::from(stats.kv_blocks_used) * u64::from(page.config.block_size);
    let mut out = String::new();
    for (name, kind, value) in [
        ("tgi_request_count", "counter", counters.finished + (stats.running + stats.waiting) as u64),
        ("tgi_request_success", "counter", counters.finished),
        ("tgi_queue_size", "gauge", stats.waiting as u64),
        ("tgi_batch_current_size", "gauge", stats.running as u64),
        ("tgi_batch_current_max_tokens", "gauge", batch_tokens),
    ] {
        let _ = write!(out, "# TYPE {name} {kind}\n{name} {value}\n\n");
    }
    out
}
