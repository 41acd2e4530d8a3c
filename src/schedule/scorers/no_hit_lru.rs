//! `no-hit-lru-scorer`: prompts that nobody has cached go where the last such prompt came longest ago.
//!
//! Each of them fills a cache, so the caches of the pool fill evenly. If any candidate has a part of the prompt, all score
//! 0.5. Otherwise, of `n` candidates, those that never got a cold prompt come first, in the order of the pool, then the
//! others, longest ago first: the one at place `i` scores `1 - i / (n - 1)`, a single one 1. Formula and default: llm-d's
//! endpoint picker. It counts places among all endpoints that it remembers, so with two groups of endpoints in one memory
//! many score 0; here places are counted among the candidates. A server that came back from being unreachable has an empty
//! cache and counts as never used.
//!
//! Who got cold prompts is remembered in [`crate::cold`], for all workers.

use serde::Deserialize;

use crate::schedule::{Candidate, Request, Scorer};

/// Spreads prompts that are cached nowhere.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct NoHitLru {
    /// Endpoints to remember; at least 1.
    #[serde(deserialize_with = "super::super::parameters::positive")]
    lru_size: u32,
}

impl Default for NoHitLru {
    fn default() -> Self {
        Self { lru_size: 1024 }
    }
}

impl Scorer for NoHitLru {
    fn score(&self, _: &Request<'_>, candidates: &[Candidate<'_>], scores: &mut [Option<f64>]) {
        if !Candidate::all_cold(candidates) {
            scores.fill(Some(0.5));
            return;
        }
        let last = candidates.len().saturating_sub(1).max(1) as f64;
        // Where each is of those used before, without a sort of its own in the module.
        let mut used: Vec<u32> = Vec::new();
        for rank in candidates.iter().filter_map(|candidate| candidate.cold_rank) {
            used.insert(used.partition_point(|other| *other < rank), rank);
        }
        let (mut unused, never_used) = (0, candidates.len() - used.len());
        for (score, candidate) in scores.iter_mut().zip(candidates) {
            let place = match candidate.cold_rank {
                Some(rank) => never_used + used.partition_point(|other| *other < rank),
                None => {
                    unused += 1;
                    unused - 1
                }
            };
            *score = Some(1.0 - place as f64 / last);
        }
    }

    fn cold_memory(&self) -> u32 {
        self.lru_size
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::scorers::testing::scores;

    /// The scores for these places in the memory and blocks that match.
    fn of(servers: &[(Option<u32>, u32)]) -> Vec<f64> {
        let scores = scores(&NoHitLru::default(), &Request::default(), servers, |c, (cold_rank, matched_blocks)| {
            c.cold_rank = cold_rank;
            c.matched_blocks = matched_blocks;
        });
        scores.into_iter().map(Option::unwrap).collect()
    }

    #[test]
    fn endpoints_never_used_come_in_the_order_of_the_pool() {
        assert_eq!(of(&[(None, 0); 3]), [1.0, 0.5, 0.0]);
    }

    #[test]
    fn a_prompt_that_somebody_has_is_none_of_its_business() {
        assert_eq!(of(&[(None, 5), (None, 0), (Some(0), 0)]), [0.5; 3]);
    }

    #[test]
    fn the_only_endpoint_scores_one() {
        assert_eq!(of(&[(None, 0)]), [1.0]);
        assert_eq!(of(&[(Some(7), 0)]), [1.0]);
        assert_eq!(of(&[]), [0.0; 0]);
    }

    #[test]
    fn the_one_used_longest_ago_comes_after_those_never_used() {
        assert_eq!(of(&[(Some(0), 0), (None, 0), (None, 0)]), [0.0, 1.0, 0.5]);
        assert_eq!(of(&[(Some(1), 0), (Some(0), 0), (None, 0)]), [0.0, 0.5, 1.0]);
        assert_eq!(of(&[(Some(0), 0), (Some(2), 0), (Some(1), 0)]), [1.0, 0.0, 0.5]);
    }

    #[test]
    fn endpoints_that_are_no_candidates_do_not_count() {
        assert_eq!(of(&[(Some(40), 0), (Some(90), 0)]), [1.0, 0.0]);
    }
}
