//! Scenarios, trials, and many of them at once.

mod runner;
mod scenario;

pub use runner::{Outcome, Plan};
pub use scenario::{Scenario, Trial, Work};
