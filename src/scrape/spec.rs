//! To come.

use std::fmt;

/// A model server whose metric names are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Engine {
    Vllm,
    Sglang,
    TrtllmServe,
    TritonTensorrtLlm,
    Tgi,
    LlamaCpp,
    Lmdeploy,
}

impl Engine {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Vllm,
        Self::Sglang,
        Self::TrtllmServe,
        Self::TritonTensorrtLlm,
        Self::Tgi,
        Self::LlamaCpp,
        Self::Lmdeploy,
    ];

    /// The name in the configuration.
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

    /// Where the server answers with its metrics.
    pub fn metrics_path(self) -> &'static str {
        match self {
            Self::TrtllmServe => "/prometheus/metrics",
            _ => "/metrics",
        }
    }
}

/// One metric by name and labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricSpec(String);

/// Why a text is no metric spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError;

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a metric spec")
    }
}

impl MetricSpec {
    /// Reads `name` or `name{label="value"}`.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        let opens = text.matches('{').count();
        if text.is_empty() || text.contains(' ') || opens != text.matches('}').count() || opens > 1 {
            return Err(SpecError);
        }
        Ok(Self(text.to_owned()))
    }
}

/// Where each signal is found, for a server that is not built in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct CustomSignals {
    pub waiting: Option<MetricSpec>,
    pub running: Option<MetricSpec>,
    pub kv_usage: Option<MetricSpec>,
    pub block_size: Option<MetricSpec>,
    pub num_blocks: Option<MetricSpec>,
}

/// Which metrics of a text are read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum EngineSpec {
    Auto,
    Builtin(Engine),
    Custom(CustomSignals),
}

#[allow(missing_docs)]
impl EngineSpec {
    pub fn auto() -> Self {
        Self::Auto
    }
    pub fn builtin(engine: Engine) -> Self {
        Self::Builtin(engine)
    }
    pub fn custom(signals: CustomSignals) -> Self {
        Self::Custom(signals)
    }
}
