//! What a model server says when it is scraped.

use clap::ValueEnum;

const VLLM: &[u8] = include_bytes!("../../../tests/data/metrics/vllm-0.32.0-lora-drained.txt");

/// A text, by what it costs to take in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MetricsText {
    /// 60 KB of a real vLLM.
    Vllm,
    /// As long, but it looks like JSON, which the picker refuses at its first byte: fetched and not read.
    Unread,
    /// The three signals and nothing else.
    Short,
}

impl MetricsText {
    /// Its name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Vllm => "vllm",
            Self::Unread => "unread",
            Self::Short => "short",
        }
    }

    pub(super) fn bytes(self) -> Vec<u8> {
        match self {
            Self::Vllm => VLLM.to_vec(),
            Self::Unread => [b"{".as_slice(), VLLM].concat(),
            Self::Short => {
                b"vllm:num_requests_running 0\nvllm:num_requests_waiting 0\nvllm:kv_cache_usage_perc 0\n".to_vec()
            }
        }
    }
}
