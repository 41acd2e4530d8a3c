//! A file a scorer.

mod active_request;
mod context_length_aware;
mod expected_cost;
mod kv_cache_utilization;
mod latency;
mod load_aware;
mod lora_affinity;
mod no_hit_lru;
mod prefix_cache;
mod queue;
mod running_requests;
mod session_affinity;
mod token_load;

pub(super) use active_request::ActiveRequest;
pub(super) use context_length_aware::ContextLengthAware;
pub(super) use expected_cost::ExpectedCost;
pub(super) use kv_cache_utilization::KvCacheUtilization;
pub(super) use latency::Latency;
pub(super) use load_aware::LoadAware;
pub(super) use lora_affinity::LoraAffinity;
pub(super) use no_hit_lru::NoHitLru;
pub(super) use prefix_cache::PrefixCache;
pub(super) use queue::Queue;
pub(super) use running_requests::RunningRequests;
pub(super) use token_load::TokenLoad;

/// `(max - x) / (max - min)` over the candidates that tell; 1 for all of them when all are equal.
fn fewest_first(values: impl Iterator<Item = Option<u32>> + Clone, scores: &mut [Option<f64>]) {
    let known = values.clone().flatten();
    let (Some(min), Some(max)) = (known.clone().min(), known.max()) else { return };
    let range = f64::from(max - min);
    for (score, value) in scores.iter_mut().zip(values) {
        *score = value.map(|value| if range > 0.0 { f64::from(max - value) / range } else { 1.0 });
    }
}

#[cfg(test)]
mod testing {
    use crate::schedule::{Candidate, Request, Scorer};

    /// The scores for candidates that differ in what `set` writes.
    pub(super) fn scores<'a, T: Copy>(
        scorer: &impl Scorer,
        request: &Request<'_>,
        values: &[T],
        set: impl Fn(&mut Candidate<'a>, T),
    ) -> Vec<Option<f64>> {
        let candidates: Vec<_> = values
            .iter()
            .map(|value| {
                let mut candidate = Candidate::named("10.0.0.1:8000");
                set(&mut candidate, *value);
                candidate
            })
            .collect();
        let mut scores = vec![None; candidates.len()];
        scorer.score(request, &candidates, &mut scores);
        scores
    }
}
