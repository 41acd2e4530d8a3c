//! From a Prometheus text to the signals a router needs.

mod spec;

pub use spec::{CustomSignals, Engine, EngineSpec, MetricSpec, SpecError};

use crate::clock::Timestamp;

/// What one scrape said of one server. `None`: the text does not say, which is neither zero nor full.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// Requests queued in the engine, not yet in a batch.
    pub waiting: Option<u32>,
    /// Requests in the running batch.
    pub running: Option<u32>,
    /// Share of the KV cache in use by running requests, 0..=1.
    pub kv_usage: Option<f64>,
    /// Tokens per KV block.
    pub block_size: Option<u32>,
    /// KV blocks of the server, all ranks together.
    pub num_blocks: Option<u32>,
    /// Adapters present.
    pub lora: Option<Lora>,
}

/// The adapters of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lora {
    /// Adapters the server can serve at once.
    pub max: u32,
    /// Adapters with a running request.
    pub running: Vec<Box<[u8]>>,
    /// Adapters with only waiting requests.
    pub waiting: Vec<Box<[u8]>>,
}

/// A value and when it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal<T> {
    /// The value.
    pub value: T,
    /// When the scrape that carried it ended.
    pub at: Timestamp,
}
