//! The model servers of a pool and what is known of them.
//!
//! One instance, the holder of the [`Lease`], scrapes: its [`Collector`] books each answer to the endpoint that was
//! asked and publishes a [`Snapshot`] whenever something changed. Every worker reads snapshots and judges the age of
//! each signal by its own clock, so a scraper that dies needs nobody to say so.

mod collector;
mod endpoint;
mod lease;
mod snapshot;
mod target;
#[cfg(test)]
mod tests;
mod vitals;

pub use collector::{Answer, Booked, Collector, Outcome};
pub(crate) use endpoint::fresh;
pub use endpoint::{Endpoint, Health, Signals};
pub use lease::{Claim, Lease, Member};
pub use snapshot::Snapshot;
pub use target::{Target, fingerprint};
