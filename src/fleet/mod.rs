//! The model servers of a pool and what is known of them.
//!
//! One instance, the holder of the [`Lease`], scrapes: its [`Collector`] books each answer to the endpoint that was
//! asked and publishes a [`Snapshot`] whenever something changed. Every worker reads snapshots and judges the age of
//! each signal by its own clock, so a scraper that dies needs nobody to say so. It also asks the proxy who the members are,
//! where that is not written down, and tells the others in the snapshot.

mod clusters;
mod collector;
mod discovery;
mod endpoint;
mod lease;
mod members;
mod snapshot;
mod target;
#[cfg(test)]
mod tests;
mod vitals;

pub use clusters::{Fault, Listing, Membership};
pub use collector::{Answer, Booked, Collector, Outcome};
pub use discovery::Discovery;
pub use endpoint::{Endpoint, Health, Signals};
pub(crate) use endpoint::{canonical, fresh};
pub use lease::{Claim, Lease, Member};
pub use members::Listed;
pub use snapshot::Snapshot;
pub use target::{Target, fingerprint};

/// More would not fit a snapshot that every worker reads several times a second.
pub const MOST_ENDPOINTS: usize = 1024;
