//! The cost of one request at one endpoint.

use std::fmt;

use super::{Constants, Knobs, within};
use crate::decimal::Thousandths;

/// The part of a KV cache that can be filled. Source: the replays the rule was found with.
const USABLE_CAPACITY: f64 = 0.98;

/// Longest wait and mean prefill that are believed, in seconds.
const MAX_INPUT_SECONDS: f64 = 1e6;

/// Most seconds a term can have, so that sums stay numbers.
const MAX_TERM_SECONDS: f64 = 1e9;

/// Largest weight.
const MAX_WEIGHT: f64 = 100.0;

/// What an endpoint is busy with. `None`: not known. The default is an idle endpoint of which nothing was scraped.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    /// Seconds until the prefills sent here by the own ledger are done, as its virtual clock says. Real seconds of this
    /// endpoint: what was charged to the clock was multiplied by its speed.
    pub wait_seconds: f64,
    /// Own requests in flight.
    pub requests: u32,
    /// How many of them have no first token yet.
    pub prefilling: u32,
    /// Tokens of the own requests in flight that a step reads: prompts and answers. A prefix that requests share is read
    /// for each of them.
    pub context_tokens: u32,
    /// Tokens of them that fill memory. A prefix that requests share is there once.
    pub kv_tokens: u32,
    /// Requests of others that run or wait there: scraped, less the own ones at the time of the scrape.
    pub foreign_requests: Option<u32>,
    /// How many of those wait in the engine's queue.
    pub foreign_waiting: Option<u32>,
    /// KV tokens of others.
    pub foreign_kv_tokens: Option<u32>,
    /// KV tokens the endpoint has room for.
    pub capacity_tokens: Option<u32>,
    /// Prefill seconds at speed 1 of an average request of the pool, for what others have waiting.
    pub mean_prefill_seconds: Option<f64>,
}

/// What a request brings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Tokens of the prompt.
    pub prompt_tokens: u32,
    /// Tokens of the prompt that the endpoint is believed to have cached.
    pub cached_tokens: u32,
    /// Output tokens expected.
    pub output_tokens: u32,
    /// It names a LoRA adapter that is loaded elsewhere and, as far as is known, not here.
    pub loads_adapter: bool,
}

/// How many times slower than the constants say an endpoint is. Used within 0.01..=100; what is no such number is 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speed {
    /// `s`: at reading prompts.
    pub prefill: f64,
    /// `d`: at generating, pauses for the prefills of others included.
    pub decode: f64,
    /// `e`: at a step of the engine.
    pub step: f64,
}

/// The terms of a cost, in seconds, weighted as they count; `total` is their sum.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Terms {
    /// Until the engine's queue is done.
    pub wait: f64,
    /// Longer than that, until there is room in memory.
    pub memory_wait: f64,
    /// The own prefill.
    pub prefill: f64,
    /// The requests there that get no token during the own prefill.
    pub stall: f64,
    /// The own output, at the pace of this endpoint.
    pub slowdown_of_me: f64,
    /// What this request adds to each step of the streams there.
    pub slowdown_of_others: f64,
    /// Until its adapter is loaded.
    pub adapter: f64,
    /// The cost.
    pub total: f64,
}

impl Work {
    /// Tokens of the prompt that have to be read.
    pub fn uncached_tokens(self) -> u32 {
        self.prompt_tokens.saturating_sub(self.cached_tokens)
    }
}

impl Load {
    /// Requests there, own and foreign.
    fn all_requests(&self) -> f64 {
        let foreign = self.foreign_requests.unwrap_or(0).max(self.foreign_waiting.unwrap_or(0));
        f64::from(self.requests.max(self.prefilling)) + f64::from(foreign)
    }

    /// Those past their first token.
    fn decoding(&self) -> f64 {
        self.all_requests() - f64::from(self.prefilling) - f64::from(self.foreign_waiting.unwrap_or(0))
    }

    /// Tokens that a step reads.
    fn context(&self) -> f64 {
        f64::from(self.context_tokens) + f64::from(self.foreign_kv_tokens.unwrap_or(0))
    }

    /// Tokens in memory.
    fn stored(&self) -> f64 {
        f64::from(self.kv_tokens) + f64::from(self.foreign_kv_tokens.unwrap_or(0))
    }

    /// Seconds of prefill at speed 1 that others have waiting.
    fn foreign_wait(&self, constants: &Constants, work: Work) -> f64 {
        let mean =
            self.mean_prefill_seconds.unwrap_or_else(|| constants.prefill_seconds(Work { cached_tokens: 0, ..work }));
        f64::from(self.foreign_waiting.unwrap_or(0)) * within(mean, MAX_INPUT_SECONDS)
    }

    /// The share of those in memory that must end before the request fits, 0..=1.
    fn must_end(&self, work: Work) -> f64 {
        let Some(capacity) = self.capacity_tokens.filter(|tokens| *tokens > 0) else { return 0.0 };
        let stored = self.stored();
        if stored == 0.0 {
            // Nobody is there whose end would help.
            return 0.0;
        }
        let brought = f64::from(work.uncached_tokens()) + f64::from(work.output_tokens);
        within((stored + brought - USABLE_CAPACITY * f64::from(capacity)) / stored, 1.0)
    }
}

/// The cost of sending `work` to an endpoint with this speed and load.
pub fn estimate(constants: &Constants, knobs: &Knobs, speed: &Speed, load: &Load, work: &Work) -> Terms {
    let terms = &knobs.terms;
    let (requests, output) = (load.all_requests(), f64::from(work.output_tokens));
    let (prefill_speed, decode_speed, step_speed) = (factor(speed.prefill), factor(speed.decode), factor(speed.step));
    let prefill = prefill_speed * constants.prefill_seconds(*work);
    let slowdown_of_me = output * decode_speed * constants.decode_step_seconds(requests, load.context());
    let mean_context = f64::from(work.prompt_tokens) + output / 2.0;
    let slowdown_of_others = 0.5 * output * step_speed * constants.stream_seconds(mean_context) * load.decoding();

    let foreign_wait = prefill_speed * load.foreign_wait(constants, *work);
    let wait = if terms.wait { within(load.wait_seconds, MAX_INPUT_SECONDS) + foreign_wait } else { 0.0 };
    let memory = if terms.memory_wait { slowdown_of_me * load.must_end(*work) } else { 0.0 };
    let aversion = 1.0 + weight(knobs.mu) * prefill;

    let bounded = |seconds| within(seconds, MAX_TERM_SECONDS);
    let term = |counts: bool, weight, seconds| if counts { bounded(weight * seconds) } else { 0.0 };
    let wait_term = bounded(aversion * wait);
    let (alpha, lambda, theta) = (weight(knobs.alpha), weight(knobs.lambda), weight(knobs.theta));
    Terms {
        wait: wait_term,
        memory_wait: bounded(aversion * wait.max(memory)) - wait_term,
        prefill: term(terms.prefill, alpha, prefill),
        stall: term(terms.stall, lambda, requests * prefill),
        slowdown_of_me: term(terms.slowdown_of_me, theta, slowdown_of_me),
        slowdown_of_others: term(terms.slowdown_of_others, theta, slowdown_of_others),
        adapter: term(terms.adapter, 1.0, constants.load_seconds(*work)),
        total: 0.0,
    }
    .summed()
}

/// Seconds to the first token if the endpoint had speed 1: the wait and the prefill as they are, unweighted. What
/// [`Learner::observe_first_token`](crate::learned::Learner::observe_first_token) compares with the time the first token took. At most 10^9.
pub fn nominal_first_token(constants: &Constants, speed: &Speed, load: &Load, work: &Work) -> f64 {
    let clock = within(load.wait_seconds, MAX_INPUT_SECONDS) / factor(speed.prefill);
    within(clock + load.foreign_wait(constants, *work) + constants.prefill_seconds(*work), MAX_TERM_SECONDS)
}

/// Seconds between two tokens of the request if the endpoint had speed 1 and read no prompts meanwhile. What
/// [`Learner::observe_decode`](crate::learned::Learner::observe_decode) compares with the time the tokens took.
pub fn nominal_step(constants: &Constants, load: &Load, work: &Work) -> f64 {
    constants.decode_step_seconds(load.all_requests() + 1.0, load.context() + f64::from(work.prompt_tokens))
}

/// Seconds to the first token at the speed of the endpoint: its wait and its prefill. At most 10^11.
pub fn first_token_seconds(constants: &Constants, speed: &Speed, load: &Load, work: &Work) -> f64 {
    factor(speed.prefill) * nominal_first_token(constants, speed, load, work)
}

/// Seconds between two tokens of the request at the pace of the endpoint.
pub fn step_seconds(constants: &Constants, speed: &Speed, load: &Load, work: &Work) -> f64 {
    factor(speed.decode) * nominal_step(constants, load, work)
}

impl Terms {
    fn summed(mut self) -> Self {
        self.total = self.named().into_iter().map(|(_, seconds)| seconds).sum();
        self
    }

    fn named(&self) -> [(&'static str, f64); 7] {
        [
            ("wait", self.wait),
            ("memory wait", self.memory_wait),
            ("prefill", self.prefill),
            ("stall", self.stall),
            ("slowdown", self.slowdown_of_me),
            ("slowdown of others", self.slowdown_of_others),
            ("adapter", self.adapter),
        ]
    }
}

/// The terms that are half a millisecond or more: `wait 1.200 s + prefill 0.310 s + slowdown 0.040 s`.
impl fmt::Display for Terms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.named().into_iter().filter(|(_, seconds)| *seconds >= 0.0005);
        for (place, (name, seconds)) in shown.clone().enumerate() {
            let plus = if place > 0 { " + " } else { "" };
            write!(f, "{plus}{name} {} s", Thousandths(seconds))?;
        }
        if shown.count() == 0 { f.write_str("nothing") } else { Ok(()) }
    }
}

impl Default for Speed {
    fn default() -> Self {
        Self { prefill: 1.0, decode: 1.0, step: 1.0 }
    }
}

fn factor(speed: f64) -> f64 {
    if speed.is_finite() && speed > 0.0 { speed.clamp(0.01, 100.0) } else { 1.0 }
}

fn weight(weight: f64) -> f64 {
    within(weight, MAX_WEIGHT)
}
