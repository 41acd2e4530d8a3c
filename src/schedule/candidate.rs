//! What plugins look at.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::clock::Timestamp;
use crate::cost::{Load, Speed, Work};
use crate::fleet::{Endpoint, Health, fresh};
use crate::headers::Headers;
use crate::learned::Standing;
use crate::scrape::Lora;
use crate::session::Home;

/// The request to place.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request<'a> {
    /// Model or adapter name; `None` when the request names none.
    pub model: Option<&'a [u8]>,
    /// Full prefix blocks of its prompt.
    pub blocks: u32,
    /// Tokens per block.
    pub block_tokens: u32,
    /// Those of its headers that the plugins want.
    pub headers: &'a Headers,
    /// Where its session is at home; nowhere unless a plugin tells how sessions are told.
    pub session: Home,
    /// How many requests this worker has placed before, counted from a random number.
    pub turn: u64,
}

static UNLABELLED: BTreeMap<String, String> = BTreeMap::new();

/// An endpoint as one request sees it: stale signals are gone, and what this proxy itself knows is added.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    /// Its place in the pool.
    pub index: usize,
    /// `ip:port`.
    pub address: &'a str,
    /// Its labels, as configured.
    pub labels: &'a BTreeMap<String, String>,
    /// Whether it lives.
    pub health: Health,
    /// Requests queued in the engine.
    pub waiting: Option<u32>,
    /// Requests in the running batch.
    pub running: Option<u32>,
    /// Share of KV cache in use, 0..=1.
    pub kv_usage: Option<f64>,
    /// Adapters present.
    pub lora: Option<&'a Lora>,
    /// Requests this proxy has in flight there.
    pub in_flight: u32,
    /// Uncached prompt tokens of those of them that wait for their first token.
    pub in_flight_tokens: u32,
    /// Leading blocks of this request's prompt it is believed to hold.
    pub matched_blocks: u32,
    /// Its place among the endpoints that got prompts which nobody had cached, the one longest ago at 0; `None` if it never
    /// got one, or no plugin wants to know. Places may be missing between those of two candidates.
    pub cold_rank: Option<u32>,
    /// Whether it answers the requests it gets.
    pub standing: Standing,
    /// How much of its warm-up it has behind it, 0..=1.
    pub warmth: f64,
    /// How fast it is.
    pub speed: Speed,
    /// What is there, in the terms of the cost.
    pub load: Load,
    /// What this request brings.
    pub work: Work,
}

impl<'a> Candidate<'a> {
    /// Reads `endpoint` at `now`; signals older than `stale_after` are unknown.
    pub fn of(endpoint: &'a Endpoint, now: Timestamp, stale_after: Duration) -> Self {
        let signals = &endpoint.signals;
        Self {
            index: 0,
            address: &endpoint.address,
            labels: &UNLABELLED,
            health: endpoint.health,
            waiting: fresh(signals.waiting.as_ref(), now, stale_after).copied(),
            running: fresh(signals.running.as_ref(), now, stale_after).copied(),
            kv_usage: fresh(signals.kv_usage.as_ref(), now, stale_after).copied(),
            lora: fresh(signals.lora.as_ref(), now, stale_after),
            in_flight: 0,
            in_flight_tokens: 0,
            matched_blocks: 0,
            cold_rank: None,
            standing: Standing::Sound,
            warmth: 1.0,
            speed: Speed::default(),
            load: Load::default(),
            work: Work::default(),
        }
    }

    /// Whether none of `candidates` holds anything of the prompt.
    pub(crate) fn all_cold(candidates: &[Self]) -> bool {
        candidates.iter().all(|candidate| candidate.matched_blocks == 0)
    }

    #[cfg(test)]
    pub(crate) fn named(address: &'a str) -> Self {
        Self {
            index: 0,
            address,
            labels: &UNLABELLED,
            health: Health::Serving,
            waiting: None,
            running: None,
            kv_usage: None,
            lora: None,
            in_flight: 0,
            in_flight_tokens: 0,
            matched_blocks: 0,
            cold_rank: None,
            standing: Standing::Sound,
            warmth: 1.0,
            speed: Speed::default(),
            load: Load::default(),
            work: Work::default(),
        }
    }
}
