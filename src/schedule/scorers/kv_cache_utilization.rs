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

    fn of(usages: &[Option<f64>]) -> Vec<Option<f64>> {
        let scores = scores(&KvCacheUtilization, &Request::default(), usages, |c, kv| c.kv_usage = kv);
        scores.into_iter().map(|score| score.map(|score| (score * 1e9).round() / 1e9)).collect()
    }

    #[test]
    fn the_score_is_the_free_share() {
        assert_eq!(of(&[0.8, 0.5, 0.0].map(Some)), [0.2, 0.5, 1.0].map(Some));
        assert_eq!(of(&[0.6, 0.6].map(Some)), [0.4, 0.4].map(Some));
        assert_eq!(of(&[1.0, 0.5].map(Some)), [0.0, 0.5].map(Some));
    }

    #[test]
    fn a_server_never_scraped_is_not_the_emptiest() {
        assert_eq!(of(&[Some(0.75), None]), [Some(0.25), None]);
    }
}
