//! `prefix-cache-affinity-filter`: only the endpoints that hold most of the prompt, unless the wait there is too long.
//!
//! An endpoint is sticky if it holds at least `affinityThreshold` of the prompt's blocks. Only sticky endpoints stay, but
//! all do if none is sticky, with probability `explorationProbability`, or if the soonest first token among the sticky
//! would come more than `maxTTFTPenaltyMs` after the soonest among the others. A first token is expected once the
//! uncached prompt tokens in flight are read at `peakPrefillThroughput`. Formula and defaults: llm-d's endpoint picker.

use serde::Deserialize;

use crate::schedule::{Candidate, Filter, Request, Rng};

/// Removes endpoints that would have to read most of the prompt anew.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct PrefixCacheAffinity {
    /// Share of the prompt's blocks, 0..=1; at 0 all endpoints stay.
    #[serde(deserialize_with = "super::super::parameters::share")]
    affinity_threshold: f64,
    /// How often all stay whatever they hold, 0..=1.
    #[serde(deserialize_with = "super::super::parameters::share")]
    exploration_probability: f64,
    /// Milliseconds; 0 stands for no limit.
    #[serde(rename = "maxTTFTPenaltyMs", deserialize_with = "super::super::parameters::whole")]
    max_ttft_penalty_ms: u32,
    /// Prompt tokens a second; at least 1.
    #[serde(deserialize_with = "super::super::parameters::positive")]
    peak_prefill_throughput: u32,
}

impl Default for PrefixCacheAffinity {
    fn default() -> Self {
        Self {
            affinity_threshold: 0.8,
            exploration_probability: 0.0,
            max_ttft_penalty_ms: 18_000,
            peak_prefill_throughput: 15_928,
        }
    }
}

impl PrefixCacheAffinity {
    /// Whether the sticky endpoints make a request wait too long, by the fewest tokens in flight among them and among the
    /// others.
    fn saturated(&self, sticky: u32, other: u32) -> bool {
        let milliseconds = |tokens| f64::from(tokens) / f64::from(self.peak_prefill_throughput) * 1000.0;
        self.max_ttft_penalty_ms > 0 && milliseconds(sticky) - milliseconds(other) > f64::from(self.max_ttft_penalty_ms)
    }
}

impl Filter for PrefixCacheAffinity {
    fn filter(&self, request: &Request<'_>, candidates: &mut Vec<Candidate<'_>>, rng: &mut Rng) {
        if self.affinity_threshold <= 0.0 || rng.unit() < self.exploration_probability {
            return;
        }
        // Of a prompt without a full block the share is no number, and nobody is sticky.
        let blocks = f64::from(request.blocks);
        let sticks = |c: &Candidate<'_>| f64::from(c.matched_blocks) / blocks >= self.affinity_threshold;
        let tokens = |sticky| candidates.iter().filter(move |c| sticks(c) == sticky).map(|c| c.in_flight_tokens);
        if let (Some(sticky), Some(other)) = (tokens(true).min(), tokens(false).min())
            && !self.saturated(sticky, other)
        {
            candidates.retain(sticks);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The places of those that stay, of servers with so many blocks of ten and so many tokens in flight.
    fn kept(filter: &PrefixCacheAffinity, servers: &[(u32, u32)], rng: &mut Rng) -> Vec<usize> {
        kept_of(10, filter, servers, rng)
    }

    fn kept_of(blocks: u32, filter: &PrefixCacheAffinity, servers: &[(u32, u32)], rng: &mut Rng) -> Vec<usize> {
        let candidates = servers.iter().enumerate().map(|(index, (matched_blocks, in_flight_tokens))| Candidate {
            index,
            matched_blocks: *matched_blocks,
            in_flight_tokens: *in_flight_tokens,
            ..Candidate::named("10.0.0.1:8000")
        });
        let mut candidates = candidates.collect();
        filter.filter(&Request { blocks, ..Request::default() }, &mut candidates, rng);
        candidates.iter().map(|c| c.index).collect()
    }

    #[track_caller]
    fn keeps(filter: PrefixCacheAffinity, servers: &[(u32, u32)], expected: &[usize]) {
        assert_eq!(kept(&filter, servers, &mut Rng::new(1)), expected);
    }

    #[test]
    fn those_that_hold_most_of_the_prompt_stay() {
        keeps(PrefixCacheAffinity::default(), &[(7, 0), (8, 0), (10, 9000)], &[1, 2]);
        keeps(PrefixCacheAffinity { affinity_threshold: 0.5, ..Default::default() }, &[(4, 0), (5, 0)], &[1]);
    }

    #[test]
    fn with_none_that_holds_enough_all_stay() {
        keeps(PrefixCacheAffinity::default(), &[(7, 0), (0, 0)], &[0, 1]);
        keeps(PrefixCacheAffinity { affinity_threshold: 0.0, ..Default::default() }, &[(10, 0), (0, 0)], &[0, 1]);
    }

    #[test]
    fn with_all_that_hold_enough_all_stay() {
        keeps(PrefixCacheAffinity::default(), &[(8, 900_000), (9, 0)], &[0, 1]);
    }

    #[test]
    fn a_prompt_without_a_full_block_sticks_nowhere() {
        let mut candidates = vec![Candidate::named("10.0.0.1:8000"), Candidate::named("10.0.0.2:8000")];
        PrefixCacheAffinity::default().filter(&Request::default(), &mut candidates, &mut Rng::new(1));
        assert_eq!(candidates.len(), 2);
    }

    #[test]
    fn a_wait_that_is_too_long_lets_the_others_in() {
        // 18 s at 15,928 tokens a second are 286,704 tokens, more than the others have.
        keeps(PrefixCacheAffinity::default(), &[(10, 286_704 + 500), (0, 500), (0, 9000)], &[0]);
        keeps(PrefixCacheAffinity::default(), &[(10, 286_705 + 500), (0, 500), (0, 9000)], &[0, 1, 2]);
        // The soonest of the sticky counts.
        keeps(PrefixCacheAffinity::default(), &[(10, 900_000), (10, 500), (0, 0)], &[0, 1]);
        let slow = PrefixCacheAffinity { peak_prefill_throughput: 10, max_ttft_penalty_ms: 1000, ..Default::default() };
        keeps(slow, &[(10, 11), (0, 0)], &[0, 1]);
        let patient = PrefixCacheAffinity { max_ttft_penalty_ms: 0, ..Default::default() };
        keeps(patient, &[(10, u32::MAX), (0, 0)], &[0]);
    }

    /// The endpoint picker's own cases: percent of the prompt and tokens in flight.
    #[test]
    fn the_cases_of_the_endpoint_picker_come_out_alike() {
        let keeps = |filter: PrefixCacheAffinity, servers: &[(u32, u32)], expected: &[usize]| {
            assert_eq!(kept_of(100, &filter, servers, &mut Rng::new(1)), expected, "{filter:?} {servers:?}");
        };
        let default = PrefixCacheAffinity::default;
        keeps(PrefixCacheAffinity { affinity_threshold: 0.0, ..default() }, &[(90, 0), (10, 0)], &[0, 1]);
        keeps(default(), &[(10, 0), (20, 0), (50, 0)], &[0, 1, 2]);
        keeps(default(), &[(90, 0), (85, 0), (10, 0)], &[0, 1]);
        let slow = |max_ttft_penalty_ms| PrefixCacheAffinity {
            peak_prefill_throughput: 1000,
            max_ttft_penalty_ms,
            ..default()
        };
        keeps(slow(100), &[(90, 500), (10, 50)], &[0, 1]);
        keeps(slow(1000), &[(90, 500), (10, 50)], &[0]);
        keeps(slow(0), &[(90, 5000), (10, 0)], &[0]);
        keeps(PrefixCacheAffinity { exploration_probability: 1.0, ..default() }, &[(90, 0), (10, 0)], &[0, 1]);
    }

    #[test]
    fn some_requests_explore() {
        let filter = PrefixCacheAffinity { exploration_probability: 0.25, ..Default::default() };
        let mut rng = Rng::new(7);
        let explored = (0..1000).filter(|_| kept(&filter, &[(10, 0), (0, 0)], &mut rng).len() == 2).count();
        assert!((200..300).contains(&explored), "{explored}");
    }
}
