//! TensorRT-LLM behind Triton: four families, told apart by a label.

use super::Page;
use super::text::Text;

pub(super) fn render(page: &Page<'_>) -> String {
    let (stats, config) = (page.stats, page.config);
    let mut text = Text::default();
    let mut family = |name: &str, help: &str, label: &str, values: &[(&str, String)]| {
        text.family(name, "gauge", help);
        for (kind, value) in values {
            let mut labels = [(label, *kind), ("model", page.model), ("version", "1")];
            labels.sort_unstable_by_key(|(label, _)| *label);
            text.raw_sample(name, &labels, value);
        }
    };
    let running = stats.running.to_string();
    family(
        "nv_trt_llm_request_metrics",
        "TRT LLM request metrics",
        "request_type",
        &[
            ("waiting", stats.waiting.to_string()),
            ("context", "0".to_owned()),
            ("scheduled", running.clone()),
            ("max", config.max_num_seqs.to_string()),
            ("active", (stats.running + stats.waiting).to_string()),
        ],
    );
    family(
        "nv_trt_llm_runtime_memory_metrics",
        "TRT LLM runtime memory metrics",
        "memory_type",
        &[("pinned", "0".to_owned()), ("gpu", "1610236".to_owned()), ("cpu", "0".to_owned())],
    );
    family(
        "nv_trt_llm_kv_cache_block_metrics",
        "TRT LLM KV cache block metrics",
        "kv_cache_block_type",
        &[
            ("fraction", stats.kv_usage.to_string()),
            ("tokens_per", config.block_size.to_string()),
            ("used", stats.kv_blocks_used.to_string()),
            ("free", page.free_blocks().to_string()),
            ("max", config.num_gpu_blocks.to_string()),
        ],
    );
    family(
        "nv_trt_llm_inflight_batcher_metrics",
        "TRT LLM inflight_batcher-specific metrics",
        "inflight_batcher_specific_metric",
        &[
            ("micro_batch_id", "0".to_owned()),
            ("generation_requests", running),
            ("total_context_tokens", "0".to_owned()),
        ],
    );
    family(
        "nv_trt_llm_general_metrics",
        "General TRT LLM metrics",
        "general_type",
        &[("iteration_counter", stats.counters.steps.to_string()), ("timestamp", page.started.floor().to_string())],
    );
    text.out
}
