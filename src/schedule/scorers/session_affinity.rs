//! `session-affinity-scorer`: 1 where the request's session is, else 0; nobody is judged without one. See
//! [`crate::session`].

use crate::schedule::session::place;
use crate::schedule::{Candidate, Request, Scorer};
use crate::session::Session;

impl Scorer for Session {
    fn score(&self, request: &Request<'_>, candidates: &[Candidate<'_>], scores: &mut [Option<f64>]) {
        if let Some(home) = place(request.session, candidates) {
            for (at, score) in scores.iter_mut().enumerate() {
                *score = Some(if at == home { 1.0 } else { 0.0 });
            }
        }
    }

    fn headers(&self) -> Vec<&str> {
        vec![self.header()]
    }

    fn session(&self) -> Option<&Session> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::scorers::testing::scores;
    use crate::session::Home;

    fn of(session: Home) -> Vec<Option<f64>> {
        let request = Request { session, ..Request::default() };
        scores(&Session::default(), &request, &[0, 1, 2], |candidate, index| candidate.index = index)
    }

    #[test]
    fn the_endpoint_with_the_session_has_1_and_the_others_0() {
        assert_eq!(of(Home::At(1)), [Some(0.0), Some(1.0), Some(0.0)]);
    }

    #[test]
    fn nobody_is_judged_without_a_session_that_counts() {
        for session in [Home::Nowhere, Home::Unknown, Home::At(3)] {
            assert_eq!(of(session), [None; 3]);
        }
    }
}
