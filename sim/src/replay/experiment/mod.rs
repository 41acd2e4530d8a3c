//! Scenarios, trials, and many of them at once.

mod runner;
mod scenario;
#[cfg(test)]
mod tests;

pub use runner::{Outcome, Plan};
pub use scenario::{Scenario, Trial, Work};
