//! What was expected of a request when it was placed.

use super::asked::Asked;
use crate::clock::Timestamp;
use crate::cost::{Constants, nominal_first_token, nominal_step};
use crate::prefix::Belief;
use crate::schedule::Candidate;

/// What was expected of a request when it was placed.
#[derive(Clone, Copy, Debug)]
pub struct Forecast {
    pub(super) picked_at: Timestamp,
    /// It was picked before all of its body had come.
    pub(super) arriving: bool,
    pub(super) first_token_at: Option<Timestamp>,
    pub(super) model: u64,
    pub(super) first_token_seconds: f64,
    pub(super) step_seconds: f64,
    /// Of a request with one prompt: of several, an answer tells no more than the sum.
    pub(super) belief: Option<Belief>,
}

impl Forecast {
    /// Of a request that `chosen` answers and whose prompt `reader` reads, mostly the same.
    pub(super) fn of(
        asked: &Asked<'_>,
        chosen: &Candidate<'_>,
        reader: &Candidate<'_>,
        belief: Option<Belief>,
        now: Timestamp,
    ) -> Self {
        let constants = Constants::default();
        Self {
            picked_at: now,
            arriving: asked.prompt.is_some_and(|prompt| prompt.arriving),
            first_token_at: None,
            model: asked.model_hash,
            first_token_seconds: nominal_first_token(&constants, &reader.speed, &reader.load, &reader.work),
            step_seconds: nominal_step(&constants, &chosen.load, &chosen.work),
            belief,
        }
    }
}
