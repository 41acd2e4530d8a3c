//! Simulated model servers.

pub mod engine;
mod metrics;
pub mod server;

pub use metrics::Flavor;
