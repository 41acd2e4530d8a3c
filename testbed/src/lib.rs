//! A real Envoy with the shipped configuration before simulated model servers.
//!
//! [`Fleet`] is the model servers, [`Bootstrap`] the shipped configuration with the addresses of this run, [`Envoy`] the
//! running proxy and [`Client`] what stands in front of it. Every port is chosen by the system, so that any number of
//! these can run side by side.

pub mod client;
pub mod envoy;
pub mod fleet;

pub use client::{Answer, Client};
pub use envoy::{Bootstrap, Envoy};
pub use fleet::Fleet;

use std::path::{Path, PathBuf};

/// The root of the repository.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}
