//! How long an engine's step takes.

use super::{Work, within};

/// Longest of each of the constants, in seconds: nothing real is near.
const MAX: f64 = 10.0;

/// The time of one engine step, which is `step_seconds` and more for what is in it.
///
/// The default is for an engine nobody has calibrated: a model of 32 billion parameters (Qwen3-32B) on two H100, fitted
/// to its published prefill of 8,192 tokens in 0.40 s. What an engine differs from it by a factor is learned; a wrong
/// `per_pair` is not, and matters for prompts of 50,000 tokens and more.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Constants {
    /// `t0`: seconds of a step with nothing in it.
    pub step_seconds: f64,
    /// `a`: seconds per token computed.
    pub per_token: f64,
    /// `q`: seconds per pair of prompt tokens that attend to each other.
    pub per_pair: f64,
    /// `k`: seconds per token of context that is read from the KV cache.
    pub per_kv_token: f64,
    /// Seconds it takes to load a LoRA adapter. An assumption, some hundred megabytes at two gigabytes a second: no engine
    /// tells.
    pub adapter_seconds: f64,
}

impl Default for Constants {
    fn default() -> Self {
        Self { step_seconds: 0.012, per_token: 41e-6, per_pair: 1.5e-9, per_kv_token: 56e-9, adapter_seconds: 0.05 }
    }
}

impl Constants {
    /// Seconds the prompt's uncached tokens take at speed 1. The half step is the mean time until the next one begins.
    pub fn prefill_seconds(&self, work: Work) -> f64 {
        let cached = f64::from(work.cached_tokens.min(work.prompt_tokens));
        let uncached = f64::from(work.uncached_tokens());
        let pairs = uncached * (cached + uncached / 2.0);
        within(self.step_seconds, MAX) / 2.0
            + within(self.per_token, MAX) * uncached
            + within(self.per_pair, MAX) * pairs
    }

    /// Seconds per output token of each stream at speed 1, where `requests` streams hold `context` tokens.
    pub fn decode_step_seconds(&self, requests: f64, context: f64) -> f64 {
        within(self.step_seconds, MAX)
            + within(self.per_token, MAX) * within(requests, f64::MAX)
            + within(self.per_kv_token, MAX) * within(context, f64::MAX)
    }

    /// Seconds until the adapter of a request is there.
    pub(super) fn load_seconds(&self, work: Work) -> f64 {
        if work.loads_adapter { within(self.adapter_seconds, MAX) } else { 0.0 }
    }

    /// Seconds by which a stream with `context` tokens lengthens each step at speed 1.
    pub(super) fn stream_seconds(&self, context: f64) -> f64 {
        within(self.per_token, MAX) + within(self.per_kv_token, MAX) * context
    }
}
