//! Simulated model servers.

pub mod engine;
