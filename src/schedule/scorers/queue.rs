//! `queue-scorer`: `(max - q) / (max - min)` over the candidates' waiting requests; all equal: 1.

use super::fewest_first;
use crate::schedule::{Candidate, Request, Scorer};

/// Prefers short queues in the engine.
#[derive(Debug)]
pub struct Queue;

impl Scorer for Queue {
    fn score(&self, _: &Request<'_>, candidates: &[Candidate<'_>], scores: &mut [Option<f64>]) {
        fewest_first(candidates.iter().map(|c| c.waiting), scores);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::scorers::testing::scores;

    fn of(queues: &[Option<u32>]) -> Vec<Option<f64>> {
        scores(&Queue, &Request::default(), queues, |c, q| c.waiting = q)
    }

    #[test]
    fn the_shortest_queue_scores_one_and_the_longest_zero() {
        assert_eq!(of(&[Some(10), Some(5), Some(0)]), [Some(0.0), Some(0.5), Some(1.0)]);
        assert_eq!(of(&[Some(5), Some(5)]), [Some(1.0), Some(1.0)]);
        assert_eq!(of(&[Some(0), Some(0)]), [Some(1.0), Some(1.0)]);
    }

    #[test]
    fn a_server_never_scraped_is_not_the_idlest() {
        assert_eq!(of(&[Some(1), None, Some(3)]), [Some(1.0), None, Some(0.0)]);
        assert_eq!(of(&[None, None]), [None, None]);
    }
}
