//! The index and the book that all rules have in common.

use std::collections::HashMap;

use endpoint_picker::fleet::EndpointId;
use endpoint_picker::prefix::Index;
use rand_pcg::Pcg64;
use rand_pcg::rand_core::SeedableRng;

use super::{Endpoint, Rule, View};
use crate::engine::{self, Outcome};
use crate::replay::router::{Gauges, Router};
use crate::replay::trace::{Call, ROUTER_BLOCK};

/// What routers are told of the fleet and of each other.
#[derive(Clone, Debug)]
pub struct Fleet {
    /// Tokens in the KV cache of each engine.
    pub capacities: Vec<u32>,
    /// Workers of the proxy.
    pub workers: usize,
    /// Whether they know what the others know.
    pub shared: bool,
    /// Of random choices.
    pub seed: u64,
}

impl Fleet {
    /// One worker before these engines.
    pub fn of(engines: &[engine::Config], seed: u64) -> Self {
        let capacities = engines.iter().map(|engine| engine.num_gpu_blocks.saturating_mul(engine.block_size));
        Self { capacities: capacities.collect(), workers: 1, shared: true, seed }
    }

    pub(super) fn engines(&self) -> usize {
        self.capacities.len()
    }
}

/// A rule together with what it is told.
pub(super) struct Tracked<R> {
    rule: R,
    index: Index,
    ids: Vec<EndpointId>,
    endpoints: Vec<Endpoint>,
    calls: HashMap<usize, Placed>,
    matched: Vec<u32>,
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
            // Room for all that the engines hold, in the half that is there at least.
            index: Index::new(2 * blocks as usize),
            ids: (0..fleet.engines() as u64).map(EndpointId).collect(),
            endpoints: fleet.capacities.iter().map(|c| Endpoint { capacity: *c, ..Endpoint::default() }).collect(),
            calls: HashMap::new(),
            matched: Vec::new(),
            random: Pcg64::seed_from_u64(fleet.seed ^ worker.rotate_left(32)),
        }
    }

    /// Updates what the endpoints are believed to hold of this call.
    fn look_up(&mut self, call: &Call) {
        self.index.lookup(&call.prompt.chains, &self.ids, &mut self.matched);
        let total = call.hashes().len().max(1) as f64;
        for (endpoint, matched) in self.endpoints.iter_mut().zip(&self.matched) {
            endpoint.matched = f64::from(*matched) / total;
            endpoint.cached = (matched * ROUTER_BLOCK).min(call.engine.tokens.saturating_sub(1));
        }
    }
}

impl<R: Rule> Router for Tracked<R> {
    fn route(&mut self, id: usize, call: &Call, now: f64) -> usize {
        self.look_up(call);
        let view = View { now, endpoints: &self.endpoints };
        let engine = self.rule.choose(call, &view, &mut self.random);
        if let (Some(endpoint), Some(name)) = (self.endpoints.get_mut(engine), self.ids.get(engine)) {
            let uncached = endpoint.uncached(call);
            endpoint.requests += 1;
            endpoint.pending += uncached;
            self.index.insert(&call.prompt.chains, *name, endpoint.capacity / ROUTER_BLOCK);
            self.calls.insert(id, Placed { engine, uncached, pending: true });
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
