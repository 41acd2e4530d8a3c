//! filter -> score -> pick.
//!
//! A request comes with one [`Candidate`] for each endpoint that is not draining: what the endpoint told and is not stale,
//! what this proxy has in flight there, how much of the prompt it is believed to have cached, and what the request would
//! bring. Then, in a [`Profile`]:
//!
//! 1. Whatever the profile, endpoints that fail their requests are held back but for a probe (`failing`), and so are those new
//!    to the fleet that have their share already (`slow_start`), unless the filters leave nobody else.
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
//! # Prefill apart from decode
//!
//! Where that is wanted, two profiles choose, one after the other: the pool's profile the endpoint that generates, of those
//! whose label says that they can (`roles`), and a profile of its own the one that reads the prompt, if a [`Decider`] finds
//! that worth it. The first decides before it is known that the prompt is read elsewhere: it sees the whole request, so
//! of two endpoints the one with more of the prompt cached costs less, which is also what has less to be handed over.
//!
//! Plugins are pure: whatever they look at is in the [`Request`] and the [`Candidate`]s. To add a plugin: a file in `filters/`, `scorers/`, `pickers/` or `deciders/`, and a line in [`registry`]'s table.

mod candidate;
mod deciders;
mod decision;
mod failing;
mod filters;
mod pickers;
mod profile;
pub mod ready;
pub mod registry;
mod rng;
pub(crate) mod roles;
mod scorers;
mod session;
mod slo;
mod slow_start;
#[cfg(test)]
mod tests;

pub use candidate::{Candidate, Request};
pub use decision::{Decision, Ranked};
pub use profile::{Profile, Weighted};
pub use rng::Rng;
pub(crate) use slow_start::warmth;

use std::collections::BTreeMap;
use std::fmt;

use crate::cost::{Terms, Work};
use crate::parameters;
use crate::saturation::Staleness;
use crate::session::Session;

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

    /// How sessions are told, for one that looks at a request's session.
    fn session(&self) -> Option<&Session> {
        None
    }

    /// What is wrong with an endpoint's labels, for a plugin that reads more than text out of them.
    fn label_fault(&self, _: &BTreeMap<String, String>) -> Option<String> {
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

    /// How sessions are told, for one that looks at a request's session.
    fn session(&self) -> Option<&Session> {
        None
    }

    /// What is wrong with an endpoint's labels, for a plugin that reads more than text out of them.
    fn label_fault(&self, _: &BTreeMap<String, String>) -> Option<String> {
        None
    }

    /// The filter that it wants to be beside its scores, behind those of the profile.
    fn filter(&self) -> Option<Box<dyn Filter>> {
        None
    }

    /// How many endpoints it wants remembered in the order of the last prompt that came to them and that nobody had cached.
    fn cold_memory(&self) -> u32 {
        0
    }

    /// The seconds behind the score of a candidate, for a scorer that reckons in seconds.
    fn explain(&self, _: &Candidate<'_>) -> Option<Terms> {
        None
    }
}

/// Says for which requests one endpoint shall read the prompt and another one generate the answer.
pub trait Decider: fmt::Debug {
    /// Whether to split a request that would be this work where its answer is generated.
    fn splits(&self, work: &Work) -> bool;
}

/// Turns totals into an order.
pub trait Picker {
    /// Indices into `totals`, best first: the pick and those to fall back to. Empty only if `totals` is.
    fn pick(&self, request: &Request<'_>, totals: &[f64], rng: &mut Rng) -> Vec<usize>;

    /// How many endpoints it names if there are as many, at least 1.
    fn most(&self) -> usize;
}
