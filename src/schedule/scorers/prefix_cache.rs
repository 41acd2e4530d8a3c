//! `prefix-cache-scorer`: the share of the prompt that is believed to be cached, optionally blended with its length.
//!
//! `w * min(1, matched tokens / scale)^2 + (1 - w) * matched / total`. The length term tells a long match that saves
//! seconds from a short one that saves milliseconds. A request without a full block tells nothing.

use serde::Deserialize;

use crate::schedule::{Candidate, Request, Scorer};

/// Prefers endpoints that hold the prompt's beginning.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct PrefixCache {
    /// `w`, 0..=1.
    #[serde(deserialize_with = "super::super::parameters::share")]
    match_length_weight: f64,
    /// Matched tokens from which the length term is 1; at least 1.
    #[serde(deserialize_with = "super::super::parameters::positive")]
    match_length_scale_tokens: u32,
}

impl Default for PrefixCache {
    fn default() -> Self {
        Self { match_length_weight: 0.0, match_length_scale_tokens: 8192 }
    }
}

impl Scorer for PrefixCache {
    fn score(&self, request: &Request<'_>, candidates: &[Candidate<'_>], scores: &mut [Option<f64>]) {
        if request.blocks == 0 {
            return;
        }
        for (score, candidate) in scores.iter_mut().zip(candidates) {
            let matched = f64::from(candidate.matched_blocks);
            let length = matched * f64::from(request.block_tokens) / f64::from(self.match_length_scale_tokens);
            let ratio = matched / f64::from(request.blocks);
            let w = self.match_length_weight;
            *score = Some(w * length.min(1.0).powi(2) + (1.0 - w) * ratio);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::scorers::testing::scores;

    fn of(scorer: &PrefixCache, total: u32, matched: &[u32]) -> Vec<Option<f64>> {
        let request = Request { blocks: total, block_tokens: 1, ..Request::default() };
        scores(scorer, &request, matched, |c, m| c.matched_blocks = m)
    }

    #[test]
    fn the_score_is_the_matched_share() {
        assert_eq!(of(&PrefixCache::default(), 10, &[5, 2, 0]), [Some(0.5), Some(0.2), Some(0.0)]);
        assert_eq!(of(&PrefixCache::default(), 0, &[0]), [None]);
    }

    #[test]
    fn a_long_match_counts_more_than_its_share() {
        let scorer = PrefixCache { match_length_weight: 0.5, match_length_scale_tokens: 100 };
        assert_eq!(of(&scorer, 10, &[5]), [Some(0.25125)]);
        assert_eq!(of(&scorer, 100, &[50]), [Some(0.375)]);
    }
}
