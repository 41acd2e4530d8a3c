//! `running-requests-size-scorer`: `(max - r) / (max - min)` over the candidates' running requests; all equal: 1.

use super::fewest_first;
use crate::schedule::{Candidate, Request, Scorer};

/// Prefers small batches.
#[derive(Debug)]
pub struct RunningRequests;

impl Scorer for RunningRequests {
    fn score(&self, _: &Request<'_>, candidates: &[Candidate<'_>], scores: &mut [Option<f64>]) {
        fewest_first(candidates.iter().map(|c| c.running), scores);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::scorers::testing::scores;

    #[test]
    fn the_smallest_batch_scores_one() {
        let running = [Some(20), Some(5), None, Some(0)];
        let scores = scores(&RunningRequests, &Request::default(), &running, |c, r| c.running = r);
        assert_eq!(scores, [Some(0.0), Some(0.75), None, Some(1.0)]);
    }
}
