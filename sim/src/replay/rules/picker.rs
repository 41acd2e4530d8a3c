//! `picker`: the picker itself, the very code that runs inside the proxy.
//!
//! Each worker is a [`Picker`] of its own; those that share have one store, as all workers of a proxy have. Snapshots are
//! made of what scrapes show, as the scraper makes them, and taken over before the next decision. What the proxy would
//! read from bodies and streams comes from the trace: the prompt's blocks, and how many pieces the answer had.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;

use endpoint_picker::clock::Timestamp;
use endpoint_picker::config::{self, Config, ConfigError};
use endpoint_picker::fleet::{Endpoint, Health, Snapshot};
use endpoint_picker::ledger::Entry;
use endpoint_picker::picker::{Forecast, Pick, Picker};
use endpoint_picker::scrape::Reading;
use endpoint_picker::store::{Memory, Store};
use endpoint_picker::usage::Usage;
use serde_json::{Map, Value, json};

use super::{Cached, Fleet};
use crate::engine::Outcome;
use crate::replay::router::{Gauges, Router};
use crate::replay::trace::{Call, ENGINE_BLOCK};

/// When replays begin, so that no time is before the first of all.
const BEGIN: u64 = 1_700_000_000_000;

/// One worker.
pub(super) struct Worker {
    picker: Picker,
    store: Rc<dyn Store>,
    snapshot: Snapshot,
    /// The snapshot is newer than what the picker has.
    scraped: bool,
    /// KV blocks of each engine, as scraped.
    blocks: Vec<Option<u32>>,
    tells_cached: Cached,
    placed: HashMap<usize, (Entry, Forecast)>,
}

/// A configuration for the simulated fleet: as `written`, but for the servers and for who shares the ledger. Workers that
/// do not share are gateways where `gateways` is written.
pub fn configured(written: &Map<String, Value>, fleet: &Fleet) -> Result<Config, ConfigError> {
    let servers: Vec<_> = (0..fleet.engines()).map(|engine| json!({ "address": address(engine) })).collect();
    let mut whole = written.clone();
    whole.insert("pool".into(), json!({ "endpoints": servers }));
    let shared = fleet.sees_all() || whole.contains_key("gateways");
    whole.insert("ledger".into(), json!(if shared { "shared" } else { "private" }));
    config::load(Value::Object(whole).to_string().as_bytes())
}

/// All workers of a proxy.
pub(super) fn workers(config: Config, fleet: &Fleet) -> Vec<Worker> {
    let config = Rc::new(config);
    let common: Rc<dyn Store> = Rc::new(Memory::default());
    let workers = (0..fleet.workers.max(1) as u64).map(|worker| {
        let store = if fleet.shared { common.clone() } else { Rc::new(Memory::default()) };
        let seed = fleet.seed.rotate_left(32) ^ worker;
        Worker::new(config.clone(), store, fleet, seed)
    });
    workers.collect()
}

fn address(engine: usize) -> SocketAddr {
    let host = u32::from(Ipv4Addr::new(10, 0, 0, 0)) + 1 + engine as u32;
    (Ipv4Addr::from(host), 8000).into()
}

fn timestamp(now: f64) -> Timestamp {
    Timestamp(BEGIN + (now * 1e3) as u64)
}

impl Worker {
    fn new(config: Rc<Config>, store: Rc<dyn Store>, fleet: &Fleet, seed: u64) -> Self {
        let endpoints = (0..fleet.engines()).map(|engine| {
            let mut endpoint = Endpoint::new(address(engine));
            endpoint.health = Health::Serving;
            endpoint
        });
        Self {
            picker: Picker::new(config, seed),
            store,
            snapshot: Snapshot { endpoints: endpoints.collect(), ..Snapshot::default() },
            scraped: true,
            blocks: fleet.capacities.iter().map(|n| fleet.tells_capacity.then_some(n / ENGINE_BLOCK)).collect(),
            tells_cached: fleet.tells_cached,
            placed: HashMap::new(),
        }
    }
}

impl Router for Worker {
    fn route(&mut self, id: usize, call: &Call, now: f64) -> usize {
        let now = timestamp(now);
        if std::mem::take(&mut self.scraped) {
            self.snapshot.version += 1;
            self.picker.refresh(&*self.store, self.snapshot.clone(), now);
        }
        // A picker that has a snapshot refuses only what its filters refuse, and the first engine is as good as another.
        let Ok(Pick { decision, entry, forecast, .. }) =
            self.picker.pick(&*self.store, Some(&*call.prompt).into(), now)
        else {
            return 0;
        };
        self.placed.insert(id, (entry, forecast));
        decision.ranked.first().map_or(0, |first| first.index)
    }

    fn first_token(&mut self, id: usize, now: f64) {
        if let Some((entry, forecast)) = self.placed.get_mut(&id) {
            self.picker.first_token(entry, forecast, true, timestamp(now));
        }
    }

    fn finished(&mut self, id: usize, outcome: Option<&Outcome>, now: f64) {
        let Some((entry, forecast)) = self.placed.remove(&id) else { return };
        if let Some(outcome) = outcome {
            let usage = Usage {
                prompt_tokens: Some(outcome.prompt_tokens),
                cached_tokens: match self.tells_cached {
                    Cached::Truth => Some(outcome.cached_tokens),
                    Cached::Nothing => None,
                    Cached::Always(tokens) => Some(tokens),
                },
                output_tokens: Some(outcome.output_tokens),
                events: outcome.output_tokens,
            };
            self.picker.finished(&entry, &forecast, &usage, timestamp(now));
        }
        self.picker.close(entry, timestamp(now));
    }

    fn scraped(&mut self, engine: usize, gauges: &Gauges) {
        let Some(endpoint) = self.snapshot.endpoints.get_mut(engine) else { return };
        let reading = Reading {
            waiting: Some(gauges.waiting),
            running: Some(gauges.running),
            kv_usage: Some(gauges.kv_usage),
            block_size: Some(ENGINE_BLOCK),
            num_blocks: self.blocks.get(engine).copied().flatten(),
            lora: None,
        };
        endpoint.signals.update(reading, timestamp(gauges.at));
        self.scraped = true;
    }

    fn tick(&mut self, now: f64) {
        self.picker.tick(&*self.store, timestamp(now));
    }
}

#[cfg(test)]
mod tests;
