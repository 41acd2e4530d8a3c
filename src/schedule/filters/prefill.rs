//! `prefill-filter`: only the endpoints that read prompts for others.
//!
//! By the label `llm-d.ai/role`: `prefill`, `encode-prefill`, `prefill-decode`, `both` or `encode-prefill-decode`. An
//! endpoint without the label does not; nobody may be left.

use crate::schedule::{Candidate, Filter, Request, Rng};

/// Removes endpoints that do not prefill.
#[derive(Debug)]
pub struct Prefill;

impl Filter for Prefill {
    fn filter(&self, _: &Request<'_>, candidates: &mut Vec<Candidate<'_>>, _: &mut Rng) {
        candidates.retain(Candidate::prefills);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::filters::testing::{kept, roles};

    #[test]
    fn who_says_that_it_prefills_stays() {
        assert_eq!(kept(&Prefill, &roles()), [0, 2, 3, 4, 6]);
    }

    #[test]
    fn nobody_may_be_left() {
        assert_eq!(kept(&Prefill, &roles()[7..]), [0; 0]);
    }
}
