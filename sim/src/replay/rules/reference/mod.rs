//! `reference`: the expected cost in seconds, written a second time for the simulator alone.
//!
//! ```text
//! P    = s (t0/2 + a u + q u (h + u/2))                            own uncached prefill
//! W    = max(virtual clock, memory wait)                           until it may start
//! Down = O d (t0 + a n + k ctx)                                    how slowly the answer comes there
//! Ext  = O d (a + k (N + O/2)) decoding / 2                        how much it slows those that are there
//! cost = W (1 + mu P) + alpha P + lambda n P + theta (Down + Ext)
//! ```
//!
//! `N` prompt tokens, `h` of them cached, `u` the others, `O` the output expected; `n` requests in flight, `ctx` their
//! tokens. The virtual clock moves on by `P` at each placement and is set to what is still pending at each first token.
//! The memory wait is the share of the cache by which the call overflows it, times the time the answers there still
//! need. Load of others is what a scrape shows beyond what was in the book when it was made.

mod learning;

use std::collections::HashMap;

use rand_pcg::Pcg64;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::{Call, Endpoint, Fleet, Rule, View, cheapest};
use crate::engine::{Outcome, StepTime};
use crate::replay::router::Gauges;

use learning::Learned;

/// Share of the cache that counts as full.
const FULL: f64 = 0.98;

/// Weight of the newest call in means over all calls.
const MEAN_DECAY: f64 = 0.01;

/// Output tokens expected before the first answer.
const OUTPUT_PRIOR: f64 = 300.0;

/// How many blocks of an opening are hashed, and the share of the prompt that is then believed to be cached where the hash
/// says. The first 2,048 tokens keep together what shares a system prompt, of which an engine should hold few. Where all
/// calls share them the whole opening, up to the end of the first message, still tells conversations apart; it counts
/// less, or prompts with a long common beginning would be spread.
const PRIOR: [(usize, f64); 2] = [(32, 0.6), (usize::MAX, 0.4)];

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
    /// Whether calls are drawn to the engines that their openings hash to: so routers agree that do not talk.
    pub(super) prior: bool,
}

impl Default for Weights {
    fn default() -> Self {
        Self { length: 0.1, prefill: 2.0, batch: 0.1, decode: 0.1, memory: 1.0, prior: false }
    }
}

pub(in crate::replay) struct Reference {
    weights: Weights,
    step: StepTime,
    engines: Vec<State>,
    capacities: Vec<u32>,
    calls: HashMap<usize, Placed>,
    learned: Learned,
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
    /// Seconds of its prefill, at the engine's learned speed.
    prefill: f64,
    /// The same by the unlearned model.
    prefill_nominal: f64,
    /// Seconds to its first token by the unlearned model.
    nominal: f64,
    /// Seconds of a step by the unlearned model.
    step: f64,
    first_token: Option<f64>,
    context: f64,
    added: f64,
}

impl Reference {
    pub(super) fn new(weights: Weights, learns: bool, fleet: &Fleet) -> Self {
        Self {
            weights,
            step: StepTime::QWEN3_32B_TP2,
            engines: vec![State::default(); fleet.engines()],
            capacities: fleet.capacities.clone(),
            calls: HashMap::new(),
            learned: Learned::new(fleet.engines(), learns),
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
    fn cost(&self, place: usize, call: &Call, endpoint: &Endpoint, homes: &[usize], now: f64) -> (f64, Placed) {
        let state = self.engines.get(place).copied().unwrap_or_default();
        let (tokens, output) = (f64::from(call.engine.tokens), self.output);
        let (speed, pace) = (self.learned.speed(place), self.learned.pace(place));
        let prior = PRIOR.iter().zip(homes).filter(|(_, home)| self.weights.prior && **home == place);
        let prior = prior.map(|((_, share), _)| share * tokens).fold(0.0, f64::max);
        let cached = f64::from(endpoint.cached).max(prior);
        let uncached = tokens - cached;
        let nominal = self.prefill(uncached, cached);
        let prefill = speed * nominal;

        let foreign = state.foreign;
        let requests = state.requests + foreign.requests;
        let decoding = f64::from(endpoint.decoding) + (foreign.requests - foreign.waiting).max(0.0);
        let context = state.context + foreign.requests * (tokens + output / 2.0);
        let held = state.added + foreign.tokens;

        let StepTime { fixed: t0, per_decode_request: a, per_context_token: k, .. } = self.step;
        let step = t0 + a * requests + k * context;
        let overflow = held + uncached + output - FULL * f64::from(endpoint.capacity);
        let memory = self.weights.memory * output * step * overflow.max(0.0) / held.max(1.0);
        let clock = (state.free_at - now).max(0.0) + foreign.waiting * speed * self.mean_prefill;
        let wait = clock.max(memory);

        let own = output * pace * step;
        let others = 0.5 * output * pace * (a + k * (tokens + output / 2.0)) * decoding;
        let weights = &self.weights;
        let cost = wait * (1.0 + weights.length * prefill)
            + weights.prefill * prefill
            + weights.batch * requests * prefill
            + weights.decode * (own + others);
        let placed = Placed {
            engine: place,
            at: now,
            prefill,
            prefill_nominal: nominal,
            nominal: wait / speed + nominal,
            step,
            first_token: None,
            context: tokens + output / 2.0,
            added: uncached + output / 2.0,
        };
        (cost, placed)
    }
}

/// The engine that all routers agree on for calls whose openings have `blocks` blocks in common.
fn rendezvous(call: &Call, blocks: usize, engines: usize) -> usize {
    let last = call.opening.min(blocks).checked_sub(1);
    let opening = last.and_then(|last| call.hashes().get(last)).copied().unwrap_or(0);
    let score = |engine: &usize| xxh3_64_with_seed(&(*engine as u64).to_le_bytes(), opening);
    (0..engines).max_by_key(score).unwrap_or(0)
}

impl Rule for Reference {
    fn choose(&mut self, call: &Call, view: &View<'_>, random: &mut Pcg64) -> usize {
        let homes = PRIOR.map(|(blocks, _)| rendezvous(call, blocks, view.endpoints.len()));
        let costs = view.endpoints.iter().enumerate().map(|(place, e)| self.cost(place, call, e, &homes, view.now));
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
        self.mean_prefill += MEAN_DECAY * (placed.prefill_nominal - self.mean_prefill);
        state.requests += 1.0;
        state.waiting += 1.0;
        self.calls.insert(id, placed);
    }

    fn first_token(&mut self, id: usize, now: f64) {
        let Some(placed) = self.calls.get_mut(&id) else { return };
        let Some(state) = self.engines.get_mut(placed.engine) else { return };
        placed.first_token = Some(now);
        state.waiting -= 1.0;
        state.pending = (state.pending - placed.prefill).max(0.0);
        state.free_at = now + state.pending;
        self.learned.first_token(placed.engine, placed.nominal, now - placed.at);
    }

    fn finished(&mut self, id: usize, outcome: Option<&Outcome>, now: f64) {
        let Some(placed) = self.calls.remove(&id) else { return };
        let Some(state) = self.engines.get_mut(placed.engine) else { return };
        state.context -= placed.context;
        state.added -= placed.added;
        state.requests -= 1.0;
        if placed.first_token.is_none() {
            state.waiting -= 1.0;
            state.pending = (state.pending - placed.prefill).max(0.0);
            state.free_at = now + state.pending;
        }
        let (Some(outcome), Some(first_token)) = (outcome, placed.first_token) else { return };
        self.output += MEAN_DECAY * (f64::from(outcome.output_tokens) - self.output);
        if outcome.output_tokens > 1 {
            let interval = (now - first_token) / f64::from(outcome.output_tokens - 1);
            self.learned.answer(placed.engine, interval / placed.step);
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
