//! `slo-headroom-tier-filter`: only the endpoints that are expected to be as fast as the request expects.
//!
//! One without a prediction is not. If none is, or the request expects nothing, all stay. In `epsilonExploreNeg` of the
//! requests only the others stay, or one that was once predicted to be slow would never show that it is not. Rule and
//! default: llm-d's endpoint picker.

use serde::Deserialize;

use crate::schedule::slo::{Headroom, Slo};
use crate::schedule::{Candidate, Filter, Request, Rng};

/// Removes endpoints that are expected to be too slow.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct SloHeadroomTier {
    /// How often those stay that are expected to be too slow, 0..=1.
    #[serde(deserialize_with = "super::super::parameters::share")]
    epsilon_explore_neg: f64,
}

impl Default for SloHeadroomTier {
    fn default() -> Self {
        Self { epsilon_explore_neg: 0.01 }
    }
}

impl Filter for SloHeadroomTier {
    fn filter(&self, request: &Request<'_>, candidates: &mut Vec<Candidate<'_>>, rng: &mut Rng) {
        let slo = Slo::of(request);
        if slo.is_none() {
            return;
        }
        let fast = |c: &Candidate<'_>| slo.headroom(c).as_ref().is_some_and(Headroom::is_positive);
        let count = candidates.iter().filter(|candidate| fast(candidate)).count();
        if count > 0 && count < candidates.len() {
            let wanted = rng.unit() >= self.epsilon_explore_neg;
            candidates.retain(|candidate| fast(candidate) == wanted);
        }
    }

    fn headers(&self) -> Vec<&str> {
        Slo::headers()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::Health;
    use crate::headers::Headers;
    use crate::schedule::slo::testing::{expects, predicted};

    /// Who is left of endpoints with these waits and paces; the last one never has a prediction.
    fn kept(epsilon: f64, headers: &Headers, servers: &[(f64, f64)], rng: &mut Rng) -> Vec<usize> {
        let mut candidates: Vec<_> =
            (0..=servers.len()).map(|index| Candidate { index, ..Candidate::named("a") }).collect();
        for (candidate, (wait, pace)) in candidates.iter_mut().zip(servers) {
            predicted(candidate, *wait, *pace);
        }
        let unknown = candidates.last_mut().unwrap();
        predicted(unknown, 0.0, 1.0);
        unknown.health = Health::Unreachable;
        let request = Request { headers, ..Request::default() };
        SloHeadroomTier { epsilon_explore_neg: epsilon }.filter(&request, &mut candidates, rng);
        candidates.iter().map(|candidate| candidate.index).collect()
    }

    #[track_caller]
    fn keeps(headers: Headers, servers: &[(f64, f64)], expected: &[usize]) {
        assert_eq!(kept(0.0, &headers, servers, &mut Rng::new(1)), expected);
    }

    #[test]
    fn those_stay_that_are_fast_enough_at_all_that_is_expected() {
        let servers = [(0.0, 1.0), (2.0, 1.0), (0.0, 5.0), (2.0, 5.0)];
        keeps(expects(Some("1000"), Some("20")), &servers, &[0]);
        keeps(expects(Some("1000"), None), &servers, &[0, 2]);
        keeps(expects(None, Some("20")), &servers, &[0, 1]);
    }

    #[test]
    fn all_stay_if_none_is_fast_enough_or_nothing_is_expected() {
        let servers = [(0.0, 1.0), (2.0, 1.0)];
        keeps(expects(Some("1"), None), &servers, &[0, 1, 2]);
        keeps(Headers::default(), &servers, &[0, 1, 2]);
        keeps(expects(Some("soon"), Some("-1")), &servers, &[0, 1, 2]);
    }

    #[test]
    fn some_requests_go_to_those_that_are_expected_to_be_slow() {
        let (headers, mut rng) = (expects(Some("1000"), None), Rng::new(7));
        let rounds = (0..1000).map(|_| kept(0.25, &headers, &[(0.0, 1.0), (2.0, 1.0)], &mut rng));
        let explored: Vec<_> = rounds.filter(|left| left != &[0]).collect();
        assert!((200..300).contains(&explored.len()), "{}", explored.len());
        assert!(explored.iter().all(|left| left == &[1, 2]));
    }
}
