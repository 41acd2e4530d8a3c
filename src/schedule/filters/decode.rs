//! `decode-filter`: only the endpoints that can generate an answer.
//!
//! By the label `llm-d.ai/role`: `decode`, `prefill-decode`, `both`, `encode-prefill-decode`, or no such label at all. An
//! engine that only reads prompts cannot answer, so nobody may be left.

use crate::schedule::{Candidate, Filter, Request, Rng};

/// Removes endpoints that do not decode.
#[derive(Debug)]
pub struct Decode;

impl Filter for Decode {
    fn filter(&self, _: &Request<'_>, candidates: &mut Vec<Candidate<'_>>, _: &mut Rng) {
        candidates.retain(Candidate::decodes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::filters::testing::{kept, roles};

    #[test]
    fn who_decodes_or_does_not_say_stays() {
        assert_eq!(kept(&Decode, &roles()), [1, 3, 4, 6, 7]);
    }

    #[test]
    fn nobody_may_be_left() {
        assert_eq!(kept(&Decode, &roles()[..1]), [0; 0]);
    }
}
