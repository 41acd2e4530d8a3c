//! filter -> score -> pick.
//!
//! A request comes with one [`Candidate`] for each endpoint that is not draining: what the endpoint told and is not stale,
//! what this proxy has in flight there, how much of the prompt it is believed to have cached, and what the request would
//! bring. Then, in a [`Profile`]:
//!
//! 1. Endpoints new to the fleet that have their share already are held back (`slow_start`), whatever the profile.
//! 2. Each **filter** takes candidates out, those that cannot serve the request or should not. A filter that says who should
//!    not, keeps all before it would take out all: a poor choice is better than none. One that says who cannot, may leave
//!    nobody over.
//! 3. Each **scorer** gives every candidate that is left a number in 0..=1, or says that it cannot tell. What is unknown is
//!    not zero: such an endpoint gets the mean of those the scorer can judge, so it is neither preferred nor shunned.
//! 4. The sum of scores times weights is a candidate's total, and the one **picker** turns totals into an order. The first
//!    is the pick, those behind it are where the proxy may try again.
//!
//! The result is a [`Decision`], which can say in words why it is what it is.
//!
//! # Which profile
//!
//! [`ready`] has five by name, each with what it is for. The default has one scorer, the expected cost in seconds (see
//! [`crate::cost`]): a wait, a cached prefix and a full batch are weighed in one unit, so that nobody has to find weights.
//! A blend of scorers sees the same signals one by one and knows not how many seconds of waiting a cached prompt is worth;
//! it is for those who come from the Gateway API Inference Extension's endpoint picker, whose names, formulas and defaults
//! the plugins have.
//!
//! Plugins are pure: whatever they look at is in the [`Request`] and the [`Candidate`]s. To add a plugin: a file in `filters/`, `scorers/` or `pickers/`, and a line in [`registry`]'s table.

mod candidate;
mod decision;
mod filters;
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
use crate::parameters;
use crate::saturation::Staleness;

/// Takes candidates out. May keep all, may keep none.
pub trait Filter {
    /// Removes what must not be picked, keeping the order.
    fn filter(&self, request: &Request<'_>, candidates: &mut Vec<Candidate<'_>>, rng: &mut Rng);

    /// The request headers that it looks at, in lower case.
    fn headers(&self) -> Vec<&str> {
        Vec::new()
    }

    /// How old a signal it believes, if it judges that by itself.
    fn staleness(&mut self) -> Option<&mut Staleness> {
        None
    }
}

/// Says how good each candidate is for a request.
pub trait Scorer {
    /// Writes a score in 0..=1 for each candidate; `None` (the initial value) where it cannot tell.
    fn score(&self, request: &Request<'_>, candidates: &[Candidate<'_>], scores: &mut [Option<f64>]);

    /// The request headers that it looks at, in lower case.
    fn headers(&self) -> Vec<&str> {
        Vec::new()
    }

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
