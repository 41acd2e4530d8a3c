//! `wait-and-prefill`: the soonest first token, `W + P` in seconds, and nothing else.

use super::Fleet;
use super::reference::{Reference, Weights};

/// The corner of the expected cost at which only the wait and the own prefill count.
pub(super) fn rule(fleet: &Fleet) -> Reference {
    let weights = Weights { length: 0.0, prefill: 1.0, batch: 0.0, decode: 0.0, memory: 0.0 };
    Reference::new(weights, fleet)
}
