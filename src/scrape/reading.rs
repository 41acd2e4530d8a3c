//! What a scrape says of a server.

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;

/// What one scrape said of one server. `None`: the text does not say, which is neither zero nor full.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// Requests queued in the server, not yet in a batch; all data-parallel ranks together.
    pub waiting: Option<u32>,
    /// Requests in the running batch; all data-parallel ranks together.
    pub running: Option<u32>,
    /// Share of the KV cache in use by running requests, 0..=1; the mean over the data-parallel ranks.
    pub kv_usage: Option<f64>,
    /// Tokens per KV block, at least 1.
    pub block_size: Option<u32>,
    /// KV blocks of the server, at least 1; all data-parallel ranks together.
    pub num_blocks: Option<u32>,
    /// Adapters present. `None` also before the first request for an adapter, when vLLM does not show any yet.
    pub lora: Option<Lora>,
}

/// The adapters of a server, at most [`MAX_ADAPTERS`](super::MAX_ADAPTERS) of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lora {
    /// Adapters the server can serve at once; 0 if the text does not say. Ranks hold the same adapters, so this is
    /// the greatest of theirs, not the sum.
    pub max: u32,
    /// Adapters with a running request, first seen first.
    pub running: Vec<Box<[u8]>>,
    /// Adapters with only waiting requests, first seen first.
    pub waiting: Vec<Box<[u8]>>,
}

/// A value and when it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signal<T> {
    /// The value.
    pub value: T,
    /// When the scrape that carried it ended.
    pub at: Timestamp,
}

impl Lora {
    /// A request for `adapter` runs.
    pub fn runs(&self, adapter: &[u8]) -> bool {
        self.running.iter().any(|name| **name == *adapter)
    }

    /// `adapter` runs or waits.
    pub fn holds(&self, adapter: &[u8]) -> bool {
        self.runs(adapter) || self.waiting.iter().any(|name| **name == *adapter)
    }

    /// One more adapter fits.
    pub fn has_room(&self) -> bool {
        self.running.len() + self.waiting.len() < self.max as usize
    }
}
