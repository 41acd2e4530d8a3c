//! filter -> score -> pick.
//!
//! A [`Profile`] holds any number of filters and scorers and exactly one picker. Each scorer gives every candidate a
//! number in 0..=1 or says that it cannot tell; the sum of scores times weights ranks the candidates. Plugins are pure:
//! whatever they look at is in the [`Request`] and the [`Candidate`]s. Names, formulas and defaults are those of the
//! Gateway API Inference Extension's endpoint picker, with one difference: what is unknown is not zero. An endpoint a
//! scorer cannot judge gets the mean of those it can, so it is neither preferred nor shunned for it.
//!
//! To add a plugin: a file in `filters/`, `scorers/` or `pickers/`, and a line in [`registry`]'s table.

mod candidate;
mod decision;
mod filters;
mod parameters;
mod pickers;
mod profile;
pub mod ready;
pub mod registry;
mod rng;
mod scorers;
mod slow_start;

pub use candidate::{Candidate, Request};
pub use decision::{Decision, Ranked};
pub use profile::{Profile, Weighted};
pub use rng::Rng;
pub(crate) use slow_start::warmth;

use crate::cost::Terms;

/// Takes candidates out. May keep all, may keep none.
pub trait Filter {
    /// Removes what must not be picked, keeping the order.
    fn filter(&self, request: &Request<'_>, candidates: &mut Vec<Candidate<'_>>, rng: &mut Rng);
}

/// Says how good each candidate is for a request.
pub trait Scorer {
    /// Writes a score in 0..=1 for each candidate; `None` (the initial value) where it cannot tell.
    fn score(&self, request: &Request<'_>, candidates: &[Candidate<'_>], scores: &mut [Option<f64>]);

    /// The seconds behind the score of a candidate, for a scorer that reckons in seconds.
    fn explain(&self, _: &Candidate<'_>) -> Option<Terms> {
        None
    }
}

/// Turns totals into an order.
pub trait Picker {
    /// Indices into `totals`, best first: the pick and those to fall back to. Empty only if `totals` is.
    fn pick(&self, request: &Request<'_>, totals: &[f64], rng: &mut Rng) -> Vec<usize>;
}
