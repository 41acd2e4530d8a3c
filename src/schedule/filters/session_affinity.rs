//! `session-affinity-filter`: only the endpoint that has the request's session, if it is among the candidates.
//!
//! All stay if the request has no session that counts; see [`crate::session`]. What a session shall give way to, such as
//! adapters that are loaded elsewhere, belongs before it in the profile.

use crate::schedule::session::place;
use crate::schedule::{Candidate, Filter, Request, Rng};
use crate::session::Session;

impl Filter for Session {
    fn filter(&self, request: &Request<'_>, candidates: &mut Vec<Candidate<'_>>, _: &mut Rng) {
        if let Some(at) = place(request.session, candidates) {
            candidates.truncate(at + 1);
            candidates.drain(..at);
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
    use crate::session::Home;

    fn kept(session: Home) -> Vec<&'static str> {
        let mut at = 0;
        let mut candidates: Vec<_> = ["a", "b", "c"].map(Candidate::named).into();
        for candidate in &mut candidates {
            (candidate.index, at) = (at, at + 1);
        }
        Session::default().filter(&Request { session, ..Request::default() }, &mut candidates, &mut Rng::new(1));
        candidates.iter().map(|candidate| candidate.address).collect()
    }

    #[test]
    fn only_the_endpoint_with_the_session_stays() {
        assert_eq!(kept(Home::At(0)), ["a"]);
        assert_eq!(kept(Home::At(1)), ["b"]);
        assert_eq!(kept(Home::At(2)), ["c"]);
        assert_eq!(kept(Home::Drawn(7)).len(), 1);
    }

    #[test]
    fn all_stay_without_a_session_that_counts() {
        for session in [Home::Nowhere, Home::Unknown, Home::At(3)] {
            assert_eq!(kept(session), ["a", "b", "c"]);
        }
    }
}
