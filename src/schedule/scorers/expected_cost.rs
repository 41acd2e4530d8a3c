//! `expected-cost-scorer`: the seconds that pass because the request goes there; see [`crate::cost`] for the rule.
//!
//! The score is `1 / (1 + seconds)`: it falls with the cost, so the order is the cost's, and it is in 0..=1 as the
//! framework wants it. The seconds themselves are in the explanation. Beside other scorers it says "a second" by a half.

use serde::Deserialize;

use crate::cost::{Constants, Knobs, Terms, estimate};
use crate::schedule::{Candidate, Request, Scorer};

/// Prefers endpoints where the request costs least.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct ExpectedCost {
    /// From the first token (0) to the whole answer (1).
    #[serde(deserialize_with = "super::super::parameters::share")]
    latency_goal: f64,
}

impl Default for ExpectedCost {
    fn default() -> Self {
        Self { latency_goal: 0.1 }
    }
}

impl ExpectedCost {
    fn terms(&self, candidate: &Candidate<'_>) -> Terms {
        let Candidate { speed, load, work, .. } = candidate;
        estimate(&Constants::default(), &Knobs::for_latency_goal(self.latency_goal), speed, load, work)
    }
}

impl Scorer for ExpectedCost {
    fn score(&self, _: &Request<'_>, candidates: &[Candidate<'_>], scores: &mut [Option<f64>]) {
        for (score, candidate) in scores.iter_mut().zip(candidates) {
            *score = Some(1.0 / (1.0 + self.terms(candidate).total));
        }
    }

    fn explain(&self, candidate: &Candidate<'_>) -> Option<Terms> {
        Some(self.terms(candidate))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::{Load, Work};
    use crate::schedule::scorers::testing::scores;

    #[test]
    fn a_queue_is_worth_a_cached_prompt_and_no_more() {
        let work = |cached_tokens| Work { prompt_tokens: 20_000, cached_tokens, output_tokens: 100, ..Work::default() };
        // Reading 20,000 tokens takes about 1.1 s, charged twice.
        let servers = [(0.0, 0), (1.0, 20_000), (4.0, 20_000)];
        let scores = scores(&ExpectedCost::default(), &Request::default(), &servers, |c, (wait_seconds, cached)| {
            c.load = Load { wait_seconds, ..Load::default() };
            c.work = work(cached);
        });
        assert!(scores[1] > scores[0] && scores[0] > scores[2], "{scores:?}");
        assert!(scores.iter().flatten().all(|score| (0.0..=1.0).contains(score)));
    }
}
