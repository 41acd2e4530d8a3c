//! `active-request-scorer`: by what this proxy has in flight, which is known at once and never stale.
//!
//! `n <= idleThreshold`: 1. Above it `(max - n) / max * maxBusyScore`, with `max` the most any candidate has.

use serde::Deserialize;

use crate::schedule::{Candidate, Request, Scorer};

/// Prefers endpoints to which this proxy has sent little.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct ActiveRequest {
    /// Requests in flight up to which an endpoint counts as idle.
    #[serde(deserialize_with = "super::super::parameters::whole")]
    idle_threshold: u32,
    /// Score of the least busy endpoint that is not idle, 0..=1.
    #[serde(deserialize_with = "super::super::parameters::share")]
    max_busy_score: f64,
}

impl Default for ActiveRequest {
    fn default() -> Self {
        Self { idle_threshold: 0, max_busy_score: 1.0 }
    }
}

impl Scorer for ActiveRequest {
    fn score(&self, _: &Request<'_>, candidates: &[Candidate<'_>], scores: &mut [Option<f64>]) {
        let max = candidates.iter().map(|c| c.in_flight).max().unwrap_or(0);
        for (score, candidate) in scores.iter_mut().zip(candidates) {
            let n = candidate.in_flight;
            *score = Some(if n <= self.idle_threshold {
                1.0
            } else {
                f64::from(max - n) / f64::from(max) * self.max_busy_score
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::scorers::testing::scores;

    fn of(in_flight: &[u32]) -> Vec<f64> {
        let scores = scores(&ActiveRequest::default(), &Request::default(), in_flight, |c, n| c.in_flight = n);
        scores.into_iter().map(|score| (score.unwrap() * 1e4).trunc() / 1e4).collect()
    }

    #[test]
    fn the_busiest_scores_zero_and_the_idle_one() {
        assert_eq!(of(&[3, 0, 6]), [0.5, 1.0, 0.0]);
        assert_eq!(of(&[4, 0, 1]), [0.0, 1.0, 0.75]);
        assert_eq!(of(&[3, 11]), [0.7272, 0.0]);
    }
}
