//! `token-load-scorer`: by the prompt tokens there are to read, in flight and of this request.
//!
//! `1 - min(tokens, queueThresholdTokens) / queueThresholdTokens`, with `tokens` the uncached ones of the requests that
//! wait for their first token and of this one. Formula and default, 128 prompts of 32,768 tokens: llm-d's endpoint picker.

use serde::Deserialize;

use crate::schedule::{Candidate, Request, Scorer};

/// Prefers endpoints that have little to read.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct TokenLoad {
    /// Tokens from which the score is 0; at least 1.
    #[serde(deserialize_with = "super::super::parameters::positive")]
    queue_threshold_tokens: u32,
}

impl Default for TokenLoad {
    fn default() -> Self {
        Self { queue_threshold_tokens: 128 * 32_768 }
    }
}

impl Scorer for TokenLoad {
    fn score(&self, _: &Request<'_>, candidates: &[Candidate<'_>], scores: &mut [Option<f64>]) {
        let threshold = f64::from(self.queue_threshold_tokens);
        for (score, candidate) in scores.iter_mut().zip(candidates) {
            let tokens = f64::from(candidate.in_flight_tokens) + f64::from(candidate.work.uncached_tokens());
            *score = Some(1.0 - tokens.min(threshold) / threshold);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::Work;
    use crate::schedule::scorers::testing::scores;

    /// The scores of servers with so many tokens in flight and so many of this prompt's 800 in their cache.
    fn of(scorer: &TokenLoad, servers: &[(u32, u32)]) -> Vec<Option<f64>> {
        scores(scorer, &Request::default(), servers, |c, (in_flight_tokens, cached_tokens)| {
            c.in_flight_tokens = in_flight_tokens;
            c.work = Work { prompt_tokens: 800, cached_tokens, ..Work::default() };
        })
    }

    #[test]
    fn what_is_in_flight_and_what_this_request_brings_count_alike() {
        let scorer = TokenLoad { queue_threshold_tokens: 1000 };
        assert_eq!(of(&scorer, &[(0, 800), (500, 800), (1000, 800)]), [1.0, 0.5, 0.0].map(Some));
        assert_eq!(of(&scorer, &[(0, 550), (250, 550), (750, 550)]), [0.75, 0.5, 0.0].map(Some));
        assert_eq!(of(&scorer, &[(0, 800), (250, 800), (0, 550), (100, 700)]), [1.0, 0.75, 0.75, 0.8].map(Some));
    }

    #[test]
    fn beyond_the_threshold_all_are_equally_bad() {
        let scorer = TokenLoad { queue_threshold_tokens: 1000 };
        assert_eq!(of(&scorer, &[(200, 0), (5000, 0), (u32::MAX, 0)]), [Some(0.0); 3]);
    }

    #[test]
    fn a_block_makes_a_difference_at_the_default() {
        let scores = of(&TokenLoad::default(), &[(64, 800), (0, 800)]);
        assert!(scores[1] > scores[0].map(|score| score + 1e-5), "{scores:?}");
    }
}
