//! `always-disagg-pd-decider`: every prompt is read elsewhere, if anyone can.

use crate::cost::Work;
use crate::schedule::Decider;

/// Splits every request.
#[derive(Debug)]
pub struct Always;

impl Decider for Always {
    fn splits(&self, _: &Work) -> bool {
        true
    }
}
