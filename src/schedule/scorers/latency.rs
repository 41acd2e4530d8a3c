//! `latency-scorer`: by the predicted times to the first token and per token after it, against what the request expects.
//!
//! Candidates fall in five tiers, best first: (4) expected to be fast enough; (3) not so, but idle, and so as fast as it
//! can be; (2) only the tokens after the first too slow; (1) only the first one too late; (0) both. Tier `t` has the scores
//! from `t/5` to `(t + 1)/5`, so that no place in a tier outweighs the next tier. The place in a tier is
//!
//! ```text
//! x     = ttftWeight·h(first token) + tpotWeight·h(step), over the sum of the weights
//! h     = (headroom - least) / (most - least) in the tier, 0.5 where all have the same
//! place = 1 - x in tier 4 with the strategy `least`, which keeps the fastest free for who needs them, else x
//! score = (t + (floor(100·place) + 1) / 101) / 5
//! ```
//!
//! in hundredths, so that what is nearly equal counts as equal. What the request says nothing of has no weight; one that
//! expects nothing at all has a single tier, from 0 to 1, in which the predictions themselves take the place of headroom,
//! the least the best. Without a prediction the score is 0, or unknown if nothing is expected. Tiers, weights and
//! hundredths: llm-d's endpoint picker.

use serde::Deserialize;

use crate::schedule::slo::{Headroom, Slo};
use crate::schedule::{Candidate, Request, Scorer};

/// How many tiers there are.
const TIERS: u32 = 5;

/// The tier of those that are fast enough.
const BEST: u32 = TIERS - 1;

/// Prefers endpoints that are expected to be fast enough.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Latency {
    /// Weight of the time to the first token, 0..=1.
    #[serde(deserialize_with = "super::super::parameters::share")]
    ttft_weight: f64,
    /// Weight of the time per token after it, 0..=1. With both 0 only the tiers count.
    #[serde(deserialize_with = "super::super::parameters::share")]
    tpot_weight: f64,
    /// Which is best of those that are fast enough.
    headroom_selection_strategy: Strategy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Strategy {
    /// The one that is only just so.
    Least,
    /// The fastest.
    Most,
}

impl Default for Latency {
    fn default() -> Self {
        Self { ttft_weight: 0.8, tpot_weight: 0.2, headroom_selection_strategy: Strategy::Least }
    }
}

impl Scorer for Latency {
    fn score(&self, request: &Request<'_>, candidates: &[Candidate<'_>], scores: &mut [Option<f64>]) {
        let slo = Slo::of(request);
        let free = slo.is_none();
        let judged: Vec<_> = candidates
            .iter()
            .map(|candidate| {
                let room = slo.headroom(candidate)?;
                Some((if free { 0 } else { tier(&room, candidate) }, room))
            })
            .collect();
        if !free {
            scores.fill(Some(0.0));
        }
        let weight = |given: Option<f64>, weight: f64| if free || given.is_some() { weight } else { 0.0 };
        let weights = [weight(slo.first_token, self.ttft_weight), weight(slo.step, self.tpot_weight)];
        for tier in 0..TIERS {
            let peers = || judged.iter().flatten().filter(|(other, _)| *other == tier).map(|(_, room)| room);
            let spans = [Span::of(peers().map(|room| room.first_token)), Span::of(peers().map(|room| room.step))];
            let least = tier == BEST && self.headroom_selection_strategy == Strategy::Least;
            for (score, own) in scores.iter_mut().zip(&judged) {
                let Some((_, room)) = own.as_ref().filter(|(other, _)| *other == tier) else { continue };
                let most = blend(weights, [spans[0].place(room.first_token), spans[1].place(room.step)]);
                let place = ((100.0 * if least { 1.0 - most } else { most }).floor() + 1.0) / 101.0;
                *score = Some(if free { place } else { (f64::from(tier) + place) / f64::from(TIERS) });
            }
        }
    }

    fn headers(&self) -> Vec<&str> {
        Slo::headers()
    }
}

fn tier(room: &Headroom, candidate: &Candidate<'_>) -> u32 {
    let idle = candidate.load.requests == 0 && candidate.load.foreign_requests.unwrap_or(0) == 0;
    match (room.first_token >= 0.0, room.step >= 0.0) {
        (true, true) => BEST,
        _ if idle => 3,
        (true, false) => 2,
        (false, true) => 1,
        (false, false) => 0,
    }
}

/// The weighted mean; a half if nothing has a weight.
fn blend(weights: [f64; 2], places: [f64; 2]) -> f64 {
    let sum = weights[0] + weights[1];
    if sum > 0.0 { (weights[0] * places[0] + weights[1] * places[1]) / sum } else { 0.5 }
}

/// From the least to the most headroom in a tier.
struct Span {
    least: f64,
    most: f64,
}

impl Span {
    fn of(rooms: impl Iterator<Item = f64>) -> Self {
        let whole = Self { least: f64::INFINITY, most: f64::NEG_INFINITY };
        rooms.fold(whole, |span, room| Self { least: span.least.min(room), most: span.most.max(room) })
    }

    fn place(&self, room: f64) -> f64 {
        let width = self.most - self.least;
        if width > 0.0 { (room - self.least) / width } else { 0.5 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::Health;
    use crate::headers::Headers;
    use crate::schedule::scorers::testing::scores;
    use crate::schedule::slo::testing::{expects, predicted};

    const MOST: Latency = Latency { ttft_weight: 0.8, tpot_weight: 0.2, headroom_selection_strategy: Strategy::Most };

    /// The scores of endpoints with these waits and paces.
    fn of(scorer: &Latency, headers: &Headers, servers: &[(f64, f64)]) -> Vec<f64> {
        let request = Request { headers, ..Request::default() };
        let scores = scores(scorer, &request, servers, |c, (wait, pace)| predicted(c, wait, pace));
        scores.into_iter().flatten().collect()
    }

    fn falls(scores: &[f64]) -> bool {
        scores.windows(2).all(|pair| pair[0] > pair[1]) && scores.iter().all(|score| (0.0..=1.0).contains(score))
    }

    #[test]
    fn fast_enough_before_idle_before_slow_tokens_before_a_late_first_before_both() {
        let headers = expects(Some("1000"), Some("20"));
        let request = Request { headers: &headers, ..Request::default() };
        let servers = [(0.9, 1.0, 1), (9.0, 9.0, 0), (0.9, 9.0, 1), (9.0, 1.0, 1), (9.0, 9.0, 1)];
        let scores = scores(&Latency::default(), &request, &servers, |c, (wait, pace, requests)| {
            predicted(c, wait, pace);
            c.load.requests = requests;
        });
        // Each is alone in its tier: in its middle, 51 of 101 hundredths.
        for (score, tier) in scores.iter().zip([4.0, 3.0, 2.0, 1.0, 0.0]) {
            assert!((score.unwrap() - (tier + 51.0 / 101.0) / 5.0).abs() < 1e-12, "{scores:?}");
        }
    }

    #[test]
    fn of_those_that_are_fast_enough_the_slowest_is_best_or_the_fastest_as_is_wanted() {
        let (headers, servers) = (expects(Some("5000"), None), [(1.0, 1.0), (2.0, 1.0), (3.0, 1.0)]);
        let fastest_first = of(&MOST, &headers, &servers);
        assert!(falls(&fastest_first), "{fastest_first:?}");
        assert!((fastest_first[0] - 1.0).abs() < 1e-12 && fastest_first[2] > 0.8, "{fastest_first:?}");
        let slowest_first: Vec<_> = of(&Latency::default(), &headers, &servers).into_iter().rev().collect();
        assert!(falls(&slowest_first), "{slowest_first:?}");
    }

    #[test]
    fn of_those_that_are_too_slow_the_fastest_is_best_whatever_is_wanted() {
        let headers = expects(Some("500"), None);
        for scorer in [Latency::default(), MOST] {
            let scores = of(&scorer, &headers, &[(1.0, 1.0), (2.0, 1.0), (3.0, 1.0)]);
            assert!(falls(&scores) && scores[0] <= 0.4 && scores[2] > 0.2, "{scores:?}");
        }
    }

    #[test]
    fn the_first_token_counts_four_times_the_others() {
        let headers = expects(Some("10000"), Some("1000"));
        let scores = of(&MOST, &headers, &[(1.0, 9.0), (2.0, 1.0)]);
        let expected = [0.8, 0.2].map(|place: f64| (4.0 + ((100.0 * place).floor() + 1.0) / 101.0) / 5.0);
        assert!(scores.iter().zip(expected).all(|(score, expected)| (score - expected).abs() < 0.003), "{scores:?}");
        let only_first = of(&MOST, &expects(Some("10000"), None), &[(1.0, 9.0), (1.0, 1.0)]);
        assert_eq!(only_first[0], only_first[1], "what is not expected has no weight");
        let no_weight = Latency { ttft_weight: 0.0, tpot_weight: 0.0, ..MOST };
        let scores = of(&no_weight, &headers, &[(1.0, 9.0), (2.0, 1.0), (99.0, 1.0)]);
        assert!(scores[0] == scores[1] && scores[1] > scores[2], "{scores:?}");
    }

    #[test]
    fn a_request_that_expects_nothing_goes_where_it_is_answered_soonest() {
        for headers in [Headers::default(), expects(Some("0"), Some("x"))] {
            for scorer in [Latency::default(), MOST] {
                let scores = of(&scorer, &headers, &[(0.0, 1.0), (1.0, 1.0), (5.0, 1.0), (9.0, 9.0)]);
                assert!(falls(&scores) && scores[0] > 0.99 && scores[3] < 0.01, "{scores:?}");
            }
        }
    }

    #[test]
    fn without_a_prediction_the_score_is_0_or_unknown_if_nothing_is_expected() {
        let of = |headers: &Headers| {
            let request = Request { headers, ..Request::default() };
            scores(&Latency::default(), &request, &[Health::Serving, Health::Unreachable], |c, health| {
                predicted(c, 9.0, 9.0);
                c.health = health;
            })
        };
        let expecting = of(&expects(Some("1"), Some("1")));
        assert!(expecting[0] > Some(0.0) && expecting[1] == Some(0.0), "{expecting:?}");
        let free = of(&Headers::default());
        assert!(free[0].is_some() && free[1].is_none(), "{free:?}");
    }

    #[test]
    fn numbers_beyond_all_reason_still_give_scores() {
        let headers = expects(Some("1e308"), Some("1e-300"));
        let scores = of(&Latency::default(), &headers, &[(f64::MAX, f64::MAX), (f64::NAN, f64::NAN), (0.0, 0.0)]);
        assert!(scores.len() == 3 && scores.iter().all(|score| (0.0..=1.0).contains(score)), "{scores:?}");
    }
}
