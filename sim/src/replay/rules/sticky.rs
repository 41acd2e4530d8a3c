//! `sticky-until-saturated`: llm-d's default since August 2026, a filter and a scorer.
//!
//! Only endpoints that hold at least 80 % of the prompt, unless the soonest first token among them is later by 18 s than
//! among the others; then the one with the fewest uncached prompt tokens in flight, this call's own included. The first
//! token is expected after the tokens in flight divided by the engine's peak prefill rate.

use rand_pcg::Pcg64;

use super::{Call, Endpoint, Rule, View, cheapest};

pub(super) struct Sticky {
    /// Share of the prompt, 0 to 1.
    affinity_threshold: f64,
    /// Seconds.
    max_ttft_penalty: f64,
    /// Tokens per second. The default is theirs for Qwen3-32B on two H100.
    peak_prefill_throughput: f64,
}

impl Default for Sticky {
    fn default() -> Self {
        Self { affinity_threshold: 0.8, max_ttft_penalty: 18.0, peak_prefill_throughput: 15_928.0 }
    }
}

impl Rule for Sticky {
    fn choose(&mut self, call: &Call, view: &View<'_>, random: &mut Pcg64) -> usize {
        let sticks = |endpoint: &Endpoint| endpoint.matched >= self.affinity_threshold;
        let soonest = |sticky| {
            let pending = view.endpoints.iter().filter(|e| sticks(e) == sticky).map(|endpoint| endpoint.pending);
            pending.min().map(|tokens| tokens as f64 / self.peak_prefill_throughput)
        };
        let only_sticky = match (soonest(true), soonest(false)) {
            (Some(sticky), Some(other)) => sticky - other <= self.max_ttft_penalty,
            _ => false,
        };
        let candidates = view.endpoints.iter().enumerate().filter(|(_, endpoint)| !only_sticky || sticks(endpoint));
        cheapest(candidates, random, |endpoint| (endpoint.pending + endpoint.uncached(call)) as f64).unwrap_or(0)
    }
}
