//! The index and the book that all rules have in common.

use std::collections::HashMap;

use endpoint_picker::id::EndpointId;
use endpoint_picker::prefix::{Cache, Index, Lookup};
use endpoint_picker::store::Memory;
use rand_pcg::Pcg64;
use rand_pcg::rand_core::SeedableRng;
use serde_json::{Map, Value};

use super::{Endpoint, Rule, View};
use crate::engine::{self, Outcome};
use crate::replay::router::{Gauges, Router};
use crate::replay::trace::{Call, ROUTER_BLOCK};

/// Blocks that the index has room for, for each that the engines hold: prompts of which an engine holds a part take pages
/// for the rest too.
const ROOM: usize = 4;

/// What routers are told of the fleet and of each other.
#[derive(Clone, Debug)]
pub struct Fleet {
    /// Tokens in the KV cache of each engine, as told; see [`Self::tells_capacity`].
    pub capacities: Vec<u32>,
    /// Whether scrapes show the capacities.
    pub tells_capacity: bool,
    /// What engines tell in their answers of the prompt tokens that were cached.
    pub tells_cached: Cached,
    /// Workers of the proxy.
    pub workers: usize,
    /// Whether they know what the others know.
    pub shared: bool,
    /// Of random choices.
    pub seed: u64,
    /// Configuration of [`RuleKind::Picker`](super::RuleKind::Picker); servers and ledger are overwritten.
    pub config: Map<String, Value>,
}

/// What an engine tells of the prompt tokens it found in its cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cached {
    /// How many there were.
    Truth,
    /// Nothing at all, as vLLM by default.
    Nothing,
    /// Always this number.
    Always(u32),
}

impl Fleet {
    /// One worker before these engines.
    pub fn of(engines: &[engine::Config], seed: u64) -> Self {
        let capacities = engines.iter().map(|engine| engine.num_gpu_blocks.saturating_mul(engine.block_size));
        Self {
            capacities: capacities.collect(),
            tells_capacity: true,
            tells_cached: Cached::Truth,
            workers: 1,
            shared: true,
            seed,
            config: Map::new(),
        }
    }

    /// Whether a worker knows all that the proxy sends.
    pub(super) fn sees_all(&self) -> bool {
        self.shared || self.workers <= 1
    }

    pub(super) fn engines(&self) -> usize {
        self.capacities.len()
    }
}

/// A rule together with what it is told.
pub(super) struct Tracked<R> {
    rule: R,
    index: Index,
    store: Memory,
    caches: Vec<Cache>,
    endpoints: Vec<Endpoint>,
    calls: HashMap<usize, Placed>,
    random: Pcg64,
}

/// A call in flight.
struct Placed {
    engine: usize,
    uncached: u64,
    /// Its first token has not come yet.
    pending: bool,
}

impl<R: Rule> Tracked<R> {
    pub(super) fn new(rule: R, fleet: &Fleet, worker: u64) -> Self {
        let blocks: u64 = fleet.capacities.iter().map(|capacity| u64::from(capacity / ROUTER_BLOCK)).sum();
        Self {
            rule,
            index: Index::new("", ROOM * blocks as usize),
            store: Memory::default(),
            caches: (0..).zip(&fleet.capacities).map(|(id, tokens)| cache(id, *tokens)).collect(),
            endpoints: fleet.capacities.iter().map(|c| Endpoint { capacity: *c, ..Endpoint::default() }).collect(),
            calls: HashMap::new(),
            random: Pcg64::seed_from_u64(fleet.seed ^ worker.rotate_left(32)),
        }
    }

    /// Updates what the endpoints are believed to hold of this call.
    fn look_up(&mut self, call: &Call) -> Lookup {
        let lookup = self.index.lookup(&self.store, &call.prompt.chains, &self.caches);
        let total = call.hashes().len().max(1) as f64;
        for (endpoint, matched) in self.endpoints.iter_mut().zip(&lookup.matched) {
            endpoint.matched = f64::from(*matched) / total;
            endpoint.cached = (matched * ROUTER_BLOCK).min(call.engine.tokens.saturating_sub(1));
        }
        lookup
    }

    /// Notes that an engine was sent this call.
    fn insert(&mut self, engine: usize, call: &Call, lookup: &Lookup) {
        let Some(cache) = self.caches.get(engine).copied() else { return };
        let advance = self.index.advance(lookup, &call.prompt.chains, &cache);
        self.index.insert(&self.store, lookup, &call.prompt.chains, cache, &advance, &self.caches);
        if let Some(cache) = self.caches.get_mut(engine) {
            cache.clock = cache.clock.wrapping_add(advance.iter().sum());
        }
    }
}

fn cache(id: u64, tokens: u32) -> Cache {
    Cache { endpoint: EndpointId(id), clock: 0, capacity: tokens / ROUTER_BLOCK }
}

impl<R: Rule> Router for Tracked<R> {
    fn route(&mut self, id: usize, call: &Call, now: f64) -> usize {
        let lookup = self.look_up(call);
        let view = View { now, endpoints: &self.endpoints };
        let engine = self.rule.choose(call, &view, &mut self.random);
        if let Some(endpoint) = self.endpoints.get_mut(engine) {
            let uncached = endpoint.uncached(call);
            endpoint.requests += 1;
            endpoint.pending += uncached;
            self.calls.insert(id, Placed { engine, uncached, pending: true });
            self.insert(engine, call, &lookup);
        }
        self.rule.placed(id, call, engine);
        engine
    }

    fn first_token(&mut self, id: usize, now: f64) {
        if let Some(placed) = self.calls.get_mut(&id)
            && let Some(endpoint) = self.endpoints.get_mut(placed.engine)
            && std::mem::take(&mut placed.pending)
        {
            endpoint.pending -= placed.uncached;
            endpoint.decoding += 1;
        }
        self.rule.first_token(id, now);
    }

    fn finished(&mut self, id: usize, outcome: Option<&Outcome>, now: f64) {
        if let Some(placed) = self.calls.remove(&id)
            && let Some(endpoint) = self.endpoints.get_mut(placed.engine)
        {
            endpoint.requests -= 1;
            if placed.pending {
                endpoint.pending -= placed.uncached;
            } else {
                endpoint.decoding -= 1;
            }
        }
        self.rule.finished(id, outcome, now);
    }

    fn scraped(&mut self, engine: usize, gauges: &Gauges) {
        if let Some(endpoint) = self.endpoints.get_mut(engine) {
            endpoint.gauges = *gauges;
        }
        self.rule.scraped(engine, gauges);
    }
}
