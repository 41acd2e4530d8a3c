//! What a client expects of an answer's speed, and what each candidate can be expected to do.
//!
//! The expectations (service level objectives) come in headers, the time to the first token and the time per output
//! token after it. The predictions are the cost's own: the wait and the prefill, and the step of the engine, at the speed
//! that was learned of the endpoint. There is none for an endpoint that cannot be reached, nor for a request whose
//! prompt was not read.

use super::{Candidate, Request};
use crate::cost::{Constants, first_token_seconds, step_seconds};
use crate::fleet::Health;
use crate::headers::Headers;

/// The header with the milliseconds to the first token, and its older name.
const FIRST_TOKEN: [&str; 2] = ["x-llm-d-slo-ttft-ms", "x-slo-ttft-ms"];

/// The header with the milliseconds per output token, and its older name.
const STEP: [&str; 2] = ["x-llm-d-slo-tpot-ms", "x-slo-tpot-ms"];

/// What a request expects, in seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slo {
    /// To the first token.
    pub(super) first_token: Option<f64>,
    /// Per token after it.
    pub(super) step: Option<f64>,
}

/// Seconds by which a candidate is expected to be faster than it must; below 0 it is expected to be too slow. 0 for what
/// the request says nothing of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Headroom {
    pub(super) first_token: f64,
    pub(super) step: f64,
}

impl Slo {
    /// All headers that can say it.
    pub(super) fn headers() -> Vec<&'static str> {
        FIRST_TOKEN.into_iter().chain(STEP).collect()
    }

    /// What `request` expects. What is not a positive number says nothing, and then the older name may.
    pub(super) fn of(request: &Request<'_>) -> Self {
        let read = |names: [&str; 2]| names.into_iter().find_map(|name| seconds(request.headers, name));
        Self { first_token: read(FIRST_TOKEN), step: read(STEP) }
    }

    /// The request expects nothing.
    pub(super) fn is_none(&self) -> bool {
        self.first_token.is_none() && self.step.is_none()
    }

    /// What is left at `candidate`; if the request expects nothing, the prediction itself, below 0. Nothing without a
    /// prediction.
    pub(super) fn headroom(&self, candidate: &Candidate<'_>) -> Option<Headroom> {
        let Candidate { health, speed, load, work, .. } = candidate;
        if *health == Health::Unreachable || work.prompt_tokens == 0 {
            return None;
        }
        let left = |slo: Option<f64>, predicted: f64| match slo {
            Some(slo) => slo - predicted,
            None if self.is_none() => -predicted,
            None => 0.0,
        };
        let constants = Constants::default();
        Some(Headroom {
            first_token: left(self.first_token, first_token_seconds(&constants, speed, load, work)),
            step: left(self.step, step_seconds(&constants, speed, load, work)),
        })
    }
}

impl Headroom {
    /// The candidate is expected to be fast enough.
    pub(super) fn is_positive(&self) -> bool {
        self.first_token >= 0.0 && self.step >= 0.0
    }
}

fn seconds(headers: &Headers, name: &str) -> Option<f64> {
    let milliseconds: f64 = std::str::from_utf8(headers.get(name)?).ok()?.trim().parse().ok()?;
    (milliseconds.is_finite() && milliseconds > 0.0).then_some(milliseconds / 1000.0)
}

#[cfg(test)]
pub(super) mod testing {
    use crate::cost::{Load, Speed, Work};
    use crate::headers::Headers;
    use crate::schedule::Candidate;

    /// The headers of a request that expects this of the first token and of each one after it.
    pub fn expects(first_token_ms: Option<&str>, step_ms: Option<&str>) -> Headers {
        let given = [("x-llm-d-slo-ttft-ms", first_token_ms), ("x-llm-d-slo-tpot-ms", step_ms)];
        given.into_iter().filter_map(|(name, value)| Some((name.into(), value?.as_bytes().to_vec()))).collect()
    }

    /// An endpoint that is predicted to give a first token after a little more than `wait` seconds and then one every
    /// `12 ms * pace`. It has requests, so it is not idle.
    pub fn predicted(candidate: &mut Candidate<'_>, wait: f64, pace: f64) {
        candidate.load = Load { wait_seconds: wait, requests: 1, ..Load::default() };
        candidate.speed = Speed { decode: pace, ..Speed::default() };
        candidate.work = Work { prompt_tokens: 10, output_tokens: 100, ..Work::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::testing::predicted;
    use super::*;

    fn slo(headers: &[(&str, &str)]) -> (Option<f64>, Option<f64>) {
        let headers = headers.iter().map(|(name, value)| ((*name).into(), value.as_bytes().to_vec())).collect();
        let Slo { first_token, step } = Slo::of(&Request { headers: &headers, ..Request::default() });
        (first_token, step)
    }

    #[test]
    fn expectations_are_milliseconds_under_new_names_and_old() {
        assert_eq!(
            slo(&[("x-llm-d-slo-ttft-ms", "250"), ("x-llm-d-slo-tpot-ms", " 12.5 ")]),
            (Some(0.25), Some(0.0125))
        );
        assert_eq!(slo(&[("x-slo-ttft-ms", "250"), ("x-slo-tpot-ms", "1e1")]), (Some(0.25), Some(0.01)));
        assert_eq!(slo(&[("x-slo-ttft-ms", "250"), ("x-llm-d-slo-ttft-ms", "100")]), (Some(0.1), None));
    }

    #[test]
    fn what_is_not_a_positive_number_expects_nothing() {
        for value in ["", "0", "-0", "-5", "NaN", "inf", "-inf", "1e999", "fast", "100ms", "1,2", "0x10"] {
            assert_eq!(slo(&[("x-llm-d-slo-ttft-ms", value), ("x-llm-d-slo-tpot-ms", value)]), (None, None), "{value}");
        }
        assert_eq!(slo(&[("x-llm-d-slo-ttft-ms", "0"), ("x-slo-ttft-ms", "250")]), (Some(0.25), None));
    }

    #[test]
    fn headroom_is_what_is_expected_less_what_is_predicted() {
        let mut candidate = Candidate::named("a");
        predicted(&mut candidate, 1.0, 2.0);
        let headroom = |first_token, step| Slo { first_token, step }.headroom(&candidate).unwrap();
        let both = headroom(Some(2.0), Some(0.025));
        assert!((0.98..1.0).contains(&both.first_token) && (0.0..0.001).contains(&both.step), "{both:?}");
        assert!(both.is_positive() && !headroom(Some(1.0), Some(0.025)).is_positive());
        assert_eq!(headroom(Some(2.0), None), Headroom { step: 0.0, ..both });
        let nothing = headroom(None, None);
        assert!(nothing.first_token < -1.0 && nothing.step < -0.024, "{nothing:?}");
    }

    #[test]
    fn a_slow_endpoint_is_predicted_to_be_slow() {
        let mut candidate = Candidate::named("a");
        predicted(&mut candidate, 0.0, 1.0);
        candidate.work.prompt_tokens = 20_000;
        let headroom =
            |candidate: &Candidate<'_>| Slo { first_token: Some(3.0), step: None }.headroom(candidate).unwrap();
        let fast = headroom(&candidate);
        candidate.speed.prefill = 3.0;
        assert!(fast.is_positive() && !headroom(&candidate).is_positive());
    }

    #[test]
    fn there_is_no_prediction_without_a_prompt_or_an_endpoint_that_answers() {
        let mut candidate = Candidate::named("a");
        predicted(&mut candidate, 1.0, 1.0);
        let slo = Slo { first_token: Some(1e6), step: None };
        assert!(slo.headroom(&candidate).is_some());
        assert_eq!(slo.headroom(&Candidate { health: Health::Unreachable, ..candidate }), None);
        candidate.work.prompt_tokens = 0;
        assert_eq!(slo.headroom(&candidate), None);
    }
}
