//! `expected-cost`: the picker's own cost model, on the book that all rules share.

use std::collections::HashMap;

use endpoint_picker::cost::{
    Constants, Knobs, Learner, Load, OutputLengths, Work, estimate, nominal_first_token,
};
use endpoint_picker::fleet::EndpointId;
use rand_pcg::Pcg64;

use super::{Call, Endpoint, Fleet, Rule, View, cheapest};
use crate::engine::Outcome;
use crate::replay::router::Gauges;

pub(super) struct ExpectedCost {
    constants: Constants,
    knobs: Knobs,
    learner: Learner,
    lengths: OutputLengths,
    engines: Vec<State>,
    capacities: Vec<u32>,
    calls: HashMap<usize, Placed>,
    mean_prefill: f64,
    decided: Option<Placed>,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    free_at: f64,
    pending: f64,
    context: u32,
    added: u32,
    requests: u32,
    prefilling: u32,
    foreign: Option<(u32, u32, u32)>,
}

#[derive(Clone, Copy, Debug)]
struct Placed {
    engine: usize,
    at: f64,
    prefill: f64,
    prefill_nominal: f64,
    nominal: f64,
    step: f64,
    context: u32,
    added: u32,
    first_token: Option<f64>,
}

impl ExpectedCost {
    pub(super) fn new(learns: bool, fleet: &Fleet) -> Self {
        Self {
            constants: Constants::default(),
            knobs: Knobs::default(),
            learner: if learns && std::env::var_os("NOLEARN").is_none() { Learner::default() } else { Learner::disabled() },
            lengths: OutputLengths::default(),
            engines: vec![State::default(); fleet.engines()],
            capacities: fleet.capacities.clone(),
            calls: HashMap::new(),
            mean_prefill: 0.0,
            decided: None,
        }
    }

    fn cost(&self, place: usize, call: &Call, endpoint: &Endpoint, now: f64) -> (f64, Placed) {
        let state = self.engines.get(place).copied().unwrap_or_default();
        let speed = self.learner.speed(EndpointId(place as u64));
        let work = Work {
            prompt_tokens: call.engine.tokens,
            cached_tokens: endpoint.cached,
            output_tokens: std::env::var("O").map_or(self.lengths.expected(0, None), |v| v.parse().unwrap_or(100)),
        };
        let shared = std::env::var_os("SHAREDKV").is_some();
        let load = Load {
            wait_seconds: (state.free_at - now).max(0.0),
            requests: state.requests,
            prefilling: state.prefilling,
            context_tokens: if shared { state.added } else { state.context },
            foreign_requests: state.foreign.map(|foreign| foreign.0),
            foreign_waiting: state.foreign.map(|foreign| foreign.1),
            foreign_kv_tokens: state.foreign.map(|foreign| foreign.2),
            capacity_tokens: Some(endpoint.capacity),
            mean_prefill_seconds: Some(self.mean_prefill),
        };
        let terms = estimate(&self.constants, &self.knobs, &speed, &load, &work);
        let requests = f64::from(load.requests);
        let context = f64::from(load.context_tokens) + f64::from(load.foreign_kv_tokens.unwrap_or(0));
        let nominal = self.constants.prefill_seconds(work);
        let placed = Placed {
            engine: place,
            at: now,
            prefill: speed.prefill * nominal,
            prefill_nominal: nominal,
            nominal: nominal_first_token(&self.constants, &speed, &load, &work),
            step: self.constants.decode_step_seconds(requests, context),
            context: work.prompt_tokens + work.output_tokens / 2,
            added: work.prompt_tokens - work.cached_tokens + work.output_tokens / 2,
            first_token: None,
        };
        (terms.total, placed)
    }
}

impl Rule for ExpectedCost {
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
        state.requests += 1;
        state.prefilling += 1;
        self.mean_prefill += 0.01 * (placed.prefill_nominal - self.mean_prefill);
        self.calls.insert(id, placed);
    }

    fn first_token(&mut self, id: usize, now: f64) {
        let Some(placed) = self.calls.get_mut(&id) else { return };
        let Some(state) = self.engines.get_mut(placed.engine) else { return };
        placed.first_token = Some(now);
        state.prefilling -= 1;
        state.pending = (state.pending - placed.prefill).max(0.0);
        state.free_at = now + state.pending;
        self.learner.observe_first_token(EndpointId(placed.engine as u64), placed.nominal, now - placed.at);
    }

    fn finished(&mut self, id: usize, outcome: Option<&Outcome>, now: f64) {
        let Some(placed) = self.calls.remove(&id) else { return };
        let Some(state) = self.engines.get_mut(placed.engine) else { return };
        state.context -= placed.context;
        state.added -= placed.added;
        state.requests -= 1;
        if placed.first_token.is_none() {
            state.prefilling -= 1;
            state.pending = (state.pending - placed.prefill).max(0.0);
            state.free_at = now + state.pending;
        }
        let (Some(outcome), Some(first_token)) = (outcome, placed.first_token) else { return };
        self.lengths.observe(0, outcome.output_tokens);
        if outcome.output_tokens > 1 {
            let interval = (now - first_token) / f64::from(outcome.output_tokens - 1);
            self.learner.observe_decode(EndpointId(placed.engine as u64), placed.step, interval);
        }
    }

    fn scraped(&mut self, engine: usize, gauges: &Gauges) {
        let (Some(state), Some(capacity)) = (self.engines.get_mut(engine), self.capacities.get(engine)) else { return };
        let shared = std::env::var_os("SHAREDKV").is_some();
        let own = if shared { state.added } else { state.context };
        state.foreign = Some((
            (gauges.running + gauges.waiting).saturating_sub(state.requests),
            gauges.waiting.saturating_sub(state.prefilling),
            ((gauges.kv_usage * f64::from(*capacity)) as u32).saturating_sub(own),
        ));
    }
}
