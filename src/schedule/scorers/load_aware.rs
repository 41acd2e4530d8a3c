//! `load-aware-scorer`: by the engine's queue against a fixed limit, not against the other candidates.
//!
//! An empty queue scores 0.5, a longer one `0.5 * (1 - min(q, threshold) / threshold)`. So it says how bad a queue is and
//! never outweighs half of a cached prefix. Formula and default: llm-d's endpoint picker, which however takes a queue that
//! is not known for an empty one; here nobody judges it.

use serde::Deserialize;

use crate::schedule::{Candidate, Request, Scorer};

/// Prefers queues far below the limit.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LoadAware {
    /// Waiting requests from which the score is 0; at least 1.
    #[serde(deserialize_with = "super::super::parameters::positive")]
    threshold: u32,
}

impl Default for LoadAware {
    fn default() -> Self {
        Self { threshold: 128 }
    }
}

impl Scorer for LoadAware {
    fn score(&self, _: &Request<'_>, candidates: &[Candidate<'_>], scores: &mut [Option<f64>]) {
        let threshold = f64::from(self.threshold);
        for (score, candidate) in scores.iter_mut().zip(candidates) {
            *score = candidate.waiting.map(|waiting| 0.5 * (1.0 - f64::from(waiting).min(threshold) / threshold));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::scorers::testing::scores;

    fn of(scorer: &LoadAware, queues: &[Option<u32>]) -> Vec<Option<f64>> {
        scores(scorer, &Request::default(), queues, |c, q| c.waiting = q)
    }

    #[test]
    fn a_queue_counts_by_its_part_of_the_threshold() {
        assert_eq!(of(&LoadAware { threshold: 10 }, &[2, 0, 15].map(Some)), [0.4, 0.5, 0.0].map(Some));
        assert_eq!(of(&LoadAware::default(), &[Some(64)]), [Some(0.25)]);
    }

    #[test]
    fn a_server_never_scraped_is_not_the_idlest() {
        assert_eq!(of(&LoadAware::default(), &[None, Some(0)]), [None, Some(0.5)]);
    }
}
