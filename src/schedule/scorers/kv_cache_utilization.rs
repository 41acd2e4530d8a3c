//! `kv-cache-utilization-scorer`: `1 - usage`, absolute, not relative to the other candidates.

use crate::schedule::{Candidate, Request, Scorer};

/// Prefers free KV cache.
#[derive(Debug)]
pub struct KvCacheUtilization;

impl Scorer for KvCacheUtilization {
    fn score(&self, _: &Request<'_>, candidates: &[Candidate<'_>], scores: &mut [Option<f64>]) {
        for (score, candidate) in scores.iter_mut().zip(candidates) {
            *score = candidate.kv_usage.map(|usage| 1.0 - usage);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::scorers::testing::scores;

    #[test]
    fn the_score_is_the_free_share() {
        let usages = [Some(0.75), Some(0.5), Some(0.0), Some(1.0), None];
        let scores = scores(&KvCacheUtilization, &Request::default(), &usages, |c, kv| c.kv_usage = kv);
        assert_eq!(scores, [Some(0.25), Some(0.5), Some(1.0), Some(0.0), None]);
    }
}
