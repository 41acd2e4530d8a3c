//! `reference`: the expected cost in seconds, written a second time for the simulator alone.
//!
//! ```text
//! P    = t0/2 + a u + q u (h + u/2)                         own uncached prefill
//! W    = max(virtual clock, memory wait)                    until it may start
//! Down = O (t0 + a n + k ctx)                               how slowly the answer comes there
//! Ext  = O (a + k (N + O/2)) decoding / 2                   how much it slows those that are there
//! cost = W (1 + mu P) + alpha P + lambda n P + theta (Down + Ext)
//! ```
//!
//! `N` prompt tokens, `h` of them cached, `u` the others, `O` the output expected; `n` requests in flight, `ctx` their
//! tokens. The virtual clock moves on by `P` at each placement and is set to what is still pending at each first token.
//! The memory wait is the share of the cache by which the call overflows it, times the time the answers there still
//! need. Load of others is what a scrape shows beyond what was in the book when it was made.
//!
//! Nothing is learned of the engines, and workers that do not share do not agree on anything: it checks the cost alone.

use std::collections::HashMap;

use rand_pcg::Pcg64;

use super::{Call, Endpoint, Fleet, Rule, View, cheapest};
use crate::engine::{Outcome, StepTime};
use crate::replay::router::Gauges;

/// Share of the cache that counts as full.
const FULL: f64 = 0.98;

/// Weight of the newest call in means over all calls.
const MEAN_DECAY: f64 = 0.01;

/// Output tokens expected before the first answer.
const OUTPUT_PRIOR: f64 = 300.0;

/// What the terms of the cost are multiplied by.
#[derive(Clone, Copy, Debug)]
pub(in crate::replay) struct Weights {
    /// mu, per second: how much a long prefill minds a wait.
    pub(super) length: f64,
    /// alpha.
    pub(super) prefill: f64,
    /// lambda: how much the batch minds a prefill.
    pub(super) batch: f64,
    /// theta.
    pub(super) decode: f64,
    /// Of the memory wait, 0 or 1.
    pub(super) memory: f64,
}

impl Default for Weights {
    fn default() -> Self {
        Self { length: 0.1, prefill: 2.0, batch: 0.1, decode: 0.1, memory: 1.0 }
    }
}

pub(in crate::replay) struct Reference {
    weights: Weights,
    step: StepTime,
    engines: Vec<State>,
    capacities: Vec<u32>,
    calls: HashMap<usize, Placed>,
    /// Mean output tokens.
    output: f64,
    /// Mean seconds of a prefill by the model.
    mean_prefill: f64,
    /// Terms of the decision under way, to be booked.
    decided: Option<Placed>,
}

/// What is in flight at an engine.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// The virtual clock: when all prefill is expected to be done.
    free_at: f64,
    /// Prefill seconds of calls without first token.
    pending: f64,
    /// Prompt and expected output tokens, those that share blocks counted twice.
    context: f64,
    /// The same less what was cached: what the calls add to the cache.
    added: f64,
    requests: f64,
    /// Of these, those without first token.
    waiting: f64,
    /// Scraped beyond the book.
    foreign: Foreign,
}

#[derive(Clone, Copy, Debug, Default)]
struct Foreign {
    requests: f64,
    waiting: f64,
    tokens: f64,
}

#[derive(Clone, Copy, Debug)]
struct Placed {
    engine: usize,
    at: f64,
    /// Seconds of its prefill.
    prefill: f64,
    /// Its first token has not come yet.
    waits: bool,
    context: f64,
    added: f64,
}

impl Reference {
    pub(super) fn new(weights: Weights, fleet: &Fleet) -> Self {
        Self {
            weights,
            step: StepTime::QWEN3_32B_TP2,
            engines: vec![State::default(); fleet.engines()],
            capacities: fleet.capacities.clone(),
            calls: HashMap::new(),
            output: OUTPUT_PRIOR,
            mean_prefill: 0.0,
            decided: None,
        }
    }

    /// Seconds of a prefill by the model.
    fn prefill(&self, uncached: f64, cached: f64) -> f64 {
        let StepTime { fixed, per_prefill_token, per_attended_pair, .. } = self.step;
        fixed / 2.0 + per_prefill_token * uncached + per_attended_pair * uncached * (cached + uncached / 2.0)
    }

    /// The cost of placing `call` at an engine, and what is to be booked if it is.
    fn cost(&self, place: usize, call: &Call, endpoint: &Endpoint, now: f64) -> (f64, Placed) {
        let state = self.engines.get(place).copied().unwrap_or_default();
        let (tokens, output) = (f64::from(call.engine.tokens), self.output);
        let cached = f64::from(endpoint.cached);
        let uncached = tokens - cached;
        let prefill = self.prefill(uncached, cached);

        let foreign = state.foreign;
        let requests = state.requests + foreign.requests;
        let decoding = f64::from(endpoint.decoding) + (foreign.requests - foreign.waiting).max(0.0);
        let context = state.context + foreign.requests * (tokens + output / 2.0);
        let held = state.added + foreign.tokens;

        let StepTime { fixed: t0, per_decode_request: a, per_context_token: k, .. } = self.step;
        let step = t0 + a * requests + k * context;
        let overflow = held + uncached + output - FULL * f64::from(endpoint.capacity);
        let memory = self.weights.memory * output * step * overflow.max(0.0) / held.max(1.0);
        let clock = (state.free_at - now).max(0.0) + foreign.waiting * self.mean_prefill;
        let wait = clock.max(memory);

        let own = output * step;
        let others = 0.5 * output * (a + k * (tokens + output / 2.0)) * decoding;
        let weights = &self.weights;
        let cost = wait * (1.0 + weights.length * prefill)
            + weights.prefill * prefill
            + weights.batch * requests * prefill
            + weights.decode * (own + others);
        let placed = Placed {
            engine: place,
            at: now,
            prefill,
            waits: true,
            context: tokens + output / 2.0,
            added: uncached + output / 2.0,
        };
        (cost, placed)
    }
}

impl Rule for Reference {
    fn choose(&mut self, call: &Call, view: &View<'_>, random: &mut Pcg64) -> usize {
        let costs = view.endpoints.iter().enumerate().map(|(place, e)| self.cost(place, call, e, view.now));
        let costs: Vec<_> = costs.collect();
        let lowest = costs.iter().map(|(cost, _)| *cost).fold(f64::INFINITY, f64::min);
        let best = view.endpoints.iter().enumerate().zip(&costs).filter(|(_, (cost, _))| *cost == lowest);
        let chosen = cheapest(best.map(|(endpoint, _)| endpoint), random, |_| 0.0).unwrap_or(0);
        self.decided = costs.get(chosen).map(|(_, placed)| *placed);
        chosen
    }

    fn placed(&mut self, id: usize, _: &Call, engine: usize) {
        let (Some(placed), Some(state)) = (self.decided.take(), self.engines.get_mut(engine)) else { return };
        state.free_at = state.free_at.max(placed.at) + placed.prefill;
        state.pending += placed.prefill;
        state.context += placed.context;
        state.added += placed.added;
        self.mean_prefill += MEAN_DECAY * (placed.prefill - self.mean_prefill);
        state.requests += 1.0;
        state.waiting += 1.0;
        self.calls.insert(id, placed);
    }

    fn first_token(&mut self, id: usize, now: f64) {
        let Some(placed) = self.calls.get_mut(&id) else { return };
        let Some(state) = self.engines.get_mut(placed.engine) else { return };
        placed.waits = false;
        state.waiting -= 1.0;
        state.pending = (state.pending - placed.prefill).max(0.0);
        state.free_at = now + state.pending;
    }

    fn finished(&mut self, id: usize, outcome: Option<&Outcome>, now: f64) {
        let Some(placed) = self.calls.remove(&id) else { return };
        let Some(state) = self.engines.get_mut(placed.engine) else { return };
        state.context -= placed.context;
        state.added -= placed.added;
        state.requests -= 1.0;
        if placed.waits {
            state.waiting -= 1.0;
            state.pending = (state.pending - placed.prefill).max(0.0);
            state.free_at = now + state.pending;
        }
        if let Some(outcome) = outcome {
            self.output += MEAN_DECAY * (f64::from(outcome.output_tokens) - self.output);
        }
    }

    fn scraped(&mut self, engine: usize, gauges: &Gauges) {
        let (Some(state), Some(capacity)) = (self.engines.get_mut(engine), self.capacities.get(engine)) else { return };
        state.foreign = Foreign {
            requests: (f64::from(gauges.running + gauges.waiting) - state.requests).max(0.0),
            waiting: (f64::from(gauges.waiting) - state.waiting).max(0.0),
            tokens: (gauges.kv_usage * f64::from(*capacity) - state.added).max(0.0),
        };
    }
}
