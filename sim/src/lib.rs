//! Simulated model servers.
