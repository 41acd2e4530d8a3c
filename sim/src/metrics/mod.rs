//! Metrics pages in the names, labels and number formats of each engine.
//!
//! Values come from the simulated engine where it has them; families it knows nothing of are there with the values of
//! an idle server, since a reader must step over them in real life too.

mod histogram;
mod llama_cpp;
mod lmdeploy;
mod lora;
mod sglang;
mod text;
mod tgi;
mod triton;
mod trtllm;
mod vllm;
mod vllm_old;

#[cfg(test)]
mod tests;

use std::str::FromStr;

pub(crate) use histogram::Histograms;
pub(crate) use lora::LoraSeries;

use crate::engine::{Config, Stats};

/// Which engine's page a server shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flavor {
    /// vLLM 0.32.
    #[default]
    Vllm,
    /// vLLM 0.8: `gpu_cache_usage_perc` and `gpu_prefix_cache_*`.
    VllmOld,
    /// SGLang 0.5.
    Sglang,
    /// `trtllm-serve`, whose page is `/prometheus/metrics`.
    TrtllmServe,
    /// TensorRT-LLM behind Triton.
    TritonTensorrtLlm,
    /// llama.cpp's server.
    LlamaCpp,
    /// Hugging Face TGI.
    Tgi,
    /// LMDeploy.
    Lmdeploy,
}

impl Flavor {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Vllm,
        Self::VllmOld,
        Self::Sglang,
        Self::TrtllmServe,
        Self::TritonTensorrtLlm,
        Self::LlamaCpp,
        Self::Tgi,
        Self::Lmdeploy,
    ];

    /// Name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Vllm => "vllm",
            Self::VllmOld => "vllm-old",
            Self::Sglang => "sglang",
            Self::TrtllmServe => "trtllm-serve",
            Self::TritonTensorrtLlm => "triton-tensorrt-llm",
            Self::LlamaCpp => "llama.cpp",
            Self::Tgi => "tgi",
            Self::Lmdeploy => "lmdeploy",
        }
    }

    /// Path of the Prometheus page.
    pub fn metrics_path(self) -> &'static str {
        if self == Self::TrtllmServe { "/prometheus/metrics" } else { "/metrics" }
    }

    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::LlamaCpp | Self::Tgi | Self::TritonTensorrtLlm => "text/plain; version=0.0.4",
            _ => "text/plain; version=1.0.0; charset=utf-8",
        }
    }

    pub(crate) fn render(self, page: &Page<'_>) -> String {
        match self {
            Self::Vllm => vllm::render(page),
            Self::VllmOld => vllm_old::render(page),
            Self::Sglang => sglang::render(page),
            Self::TrtllmServe => trtllm::render(page),
            Self::TritonTensorrtLlm => triton::render(page),
            Self::LlamaCpp => llama_cpp::render(page),
            Self::Tgi => tgi::render(page),
            Self::Lmdeploy => lmdeploy::render(page),
        }
    }
}

impl FromStr for Flavor {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = Self::ALL.map(Self::name).join(", ");
        Self::ALL.into_iter().find(|flavor| flavor.name() == name).ok_or_else(|| format!("not one of {known}"))
    }
}

/// What a page is made of.
pub(crate) struct Page<'a> {
    pub(crate) model: &'a str,
    pub(crate) config: &'a Config,
    pub(crate) stats: &'a Stats,
    pub(crate) histograms: &'a Histograms,
    pub(crate) loras: &'a LoraSeries,
    /// Unix seconds at which the server started.
    pub(crate) started: f64,
}

impl Page<'_> {
    /// Share of looked up prompt tokens that were cached.
    fn hit_rate(&self) -> f64 {
        let counters = &self.stats.counters;
        counters.prefix_hits as f64 / (counters.prefix_queries as f64).max(1.0)
    }

    fn free_blocks(&self) -> u32 {
        self.config.num_gpu_blocks - self.stats.kv_blocks_used
    }
}
