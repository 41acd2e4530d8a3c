//! The model servers known by name, and the one table of what each calls its metrics.
//!
//! Rows of one signal are alternatives in order: the first that is in the text wins, so a new name stands before the
//! old one. `name{label="value"}` picks series, `name[label]` reads the number in a label, `a + b` adds.

use std::fmt;
use std::str::FromStr;

use super::MetricSpec;
use super::signal::SignalKind::{self, BlockSize, KvUsage, Lora, NumBlocks, Running, Waiting};

type Names = &'static [(SignalKind, &'static str)];

const VLLM: Names = &[
    (Waiting, "vllm:num_requests_waiting"),
    (Running, "vllm:num_requests_running"),
    (KvUsage, "vllm:kv_cache_usage_perc"), // from 0.9.2 on; 0..1 in spite of its name
    (KvUsage, "vllm:gpu_cache_usage_perc"), // until 0.11
    (BlockSize, "vllm:cache_config_info[block_size]"),
    (NumBlocks, "vllm:cache_config_info[num_gpu_blocks]"),
    (Lora, "vllm:lora_requests_info"),
];

// sglang:lora_pool_slots_* name no adapter, so they say nothing of where one is. sglang:max_total_num_tokens is a number
// of blocks only if a page is one token.
const SGLANG: Names = &[
    (Waiting, "sglang:num_queue_reqs"),
    (Running, "sglang:num_running_reqs"),
    (KvUsage, "sglang:token_usage"),
    (BlockSize, "sglang:page_size"),
    (BlockSize, "sglang:cache_config_info[page_size]"), // in llm-d's documents, not in 0.5.23
    (NumBlocks, "sglang:num_pages"),
    (NumBlocks, "sglang:cache_config_info[num_pages]"),
];

const TRTLLM_SERVE: Names = &[
    (Waiting, "trtllm_num_requests_waiting"),
    (Running, "trtllm_num_requests_running"),
    (KvUsage, "trtllm_kv_cache_utilization"),
    (BlockSize, "trtllm_kv_cache_tokens_per_block"),
    (NumBlocks, "trtllm_kv_cache_max_blocks"),
];

const TRITON_TENSORRT_LLM: Names = &[
    (Waiting, r#"nv_trt_llm_request_metrics{request_type="waiting"}"#),
    (Running, r#"nv_trt_llm_request_metrics{request_type="scheduled"}"#),
    (KvUsage, r#"nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="fraction"}"#),
    (BlockSize, r#"nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="tokens_per"}"#),
    (NumBlocks, r#"nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="max"}"#),
];

const TGI: Names = &[(Waiting, "tgi_queue_size"), (Running, "tgi_batch_current_size")];

const LLAMA_CPP: Names = &[
    (Waiting, "llamacpp:requests_deferred"),
    (Running, "llamacpp:requests_processing"),
    (KvUsage, "llamacpp:kv_cache_usage_ratio"), // gone from the server since
];

const LMDEPLOY: Names = &[
    // A request waits in the API server first, then in the engine.
    (Waiting, "lmdeploy:num_requests_waiting + lmdeploy:num_api_requests_waiting"),
    (Running, "lmdeploy:num_requests_running"),
    (KvUsage, "lmdeploy:gpu_cache_usage_perc"), // Turbomind counts cached blocks too: a warm idle server reads high
];

/// A model server whose metric names are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Engine {
    /// vLLM, since 0.8.
    Vllm,
    /// SGLang, started with `--enable-metrics`.
    Sglang,
    /// TensorRT-LLM's own server.
    TrtllmServe,
    /// Triton with the TensorRT-LLM backend.
    TritonTensorrtLlm,
    /// Hugging Face Text Generation Inference.
    Tgi,
    /// llama.cpp's `llama-server`, started with `--metrics`.
    LlamaCpp,
    /// LMDeploy.
    Lmdeploy,
}

impl Engine {
    /// Every engine.
    pub const ALL: [Self; 7] = [
        Self::Vllm,
        Self::Sglang,
        Self::TrtllmServe,
        Self::TritonTensorrtLlm,
        Self::Tgi,
        Self::LlamaCpp,
        Self::Lmdeploy,
    ];

    /// The name in a configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Vllm => "vllm",
            Self::Sglang => "sglang",
            Self::TrtllmServe => "trtllm-serve",
            Self::TritonTensorrtLlm => "triton-tensorrt-llm",
            Self::Tgi => "tgi",
            Self::LlamaCpp => "llama.cpp",
            Self::Lmdeploy => "lmdeploy",
        }
    }

    /// Where the server shows its metrics unless told otherwise.
    pub fn metrics_path(self) -> &'static str {
        match self {
            // Its /metrics is JSON.
            Self::TrtllmServe => "/prometheus/metrics",
            _ => "/metrics",
        }
    }

    /// The signals of this engine and where they are found; alternatives of one signal in order of preference.
    pub(super) fn metrics(self) -> impl Iterator<Item = (SignalKind, MetricSpec)> {
        // That every row parses is a test.
        self.table().iter().filter_map(|&(kind, spec)| Some((kind, MetricSpec::parse(spec).ok()?)))
    }

    fn table(self) -> Names {
        match self {
            Self::Vllm => VLLM,
            Self::Sglang => SGLANG,
            Self::TrtllmServe => TRTLLM_SERVE,
            Self::TritonTensorrtLlm => TRITON_TENSORRT_LLM,
            Self::Tgi => TGI,
            Self::LlamaCpp => LLAMA_CPP,
            Self::Lmdeploy => LMDEPLOY,
        }
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Engine {
    type Err = UnknownEngine;

    fn from_str(name: &str) -> Result<Self, UnknownEngine> {
        Self::ALL.into_iter().find(|engine| engine.name() == name).ok_or(UnknownEngine)
    }
}

/// No engine has this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownEngine;

impl fmt::Display for UnknownEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unknown engine; known are")?;
        Engine::ALL.iter().enumerate().try_for_each(|(i, engine)| {
            f.write_str(if i == 0 { " " } else { ", " })?;
            f.write_str(engine.name())
        })
    }
}

impl std::error::Error for UnknownEngine {}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn every_row_of_the_table_parses() {
        for engine in Engine::ALL {
            assert_eq!(engine.metrics().count(), engine.table().len(), "{engine}");
        }
    }

    #[test]
    fn no_two_engines_share_a_name_so_that_all_can_be_looked_for_at_once() {
        let mut owner = HashMap::new();
        for engine in Engine::ALL {
            for (_, spec) in engine.metrics() {
                for term in spec.terms() {
                    assert_eq!(*owner.entry(term.name.clone()).or_insert(engine), engine, "{}", term.name);
                }
            }
        }
    }

    #[test]
    fn names_are_read_back() {
        for engine in Engine::ALL {
            assert_eq!(engine.name().parse(), Ok(engine));
        }
        let error = "vLLM".parse::<Engine>().unwrap_err();
        assert!(error.to_string().starts_with("unknown engine; known are vllm, sglang, "), "{error}");
    }

    #[test]
    fn trtllm_serve_has_its_own_path() {
        assert_eq!(Engine::TrtllmServe.metrics_path(), "/prometheus/metrics");
        assert_eq!(Engine::Vllm.metrics_path(), "/metrics");
    }
}
