//! What answers teach, learned by all workers together.
//!
//! Sixteen workers that learn alone learn each from a sixteenth of the answers, and a reloaded one starts from nothing.
//! So what is learned lies in shared data. No request waits for that: a worker gathers what it observes, and a few times a
//! second its tick puts this behind what the others wrote and takes over what is known now. All that is learned are sums
//! in which observations fade (`fading`), which makes the workers' batches come to what one worker would have learned.
//!
//! What an endpoint that left taught is dropped. One that comes back is another one and begins as what the fleet is.
//!
//! # Prefill
//!
//! The time to the first token, as it was and as predicted at speed 1, of the last 50 requests or so is put
//! through a linear regression `observed = c0 + s·predicted`. The intercept `c0` takes what has nothing to do with the
//! prompt, such as the network: without it, as with a mean of ratios, short prompts make an endpoint look slow, it is
//! sent short prompts only, and the fleet falls over. What few requests say is noise, so the slope is drawn to the
//! fleet's, the more the fewer they are and the less their lengths differ: ridge regression with the weight
//! `0.3·Var(predicted)·max(1, 30/n)`. It also never leaves a third to three times the fleet's. The fleet's own slope is
//! that through the points of all endpoints. It starts at 1 and is drawn there with `0.3·Var·30/n`, which fades.
//!
//! The variance is the fleet's, not the endpoint's own: an endpoint whose requests are all alike tells nothing of a slope.
//!
//! A prompt that is read elsewhere than where its answer is generated teaches of the endpoint that read it: the time to its
//! first token has the same parts, and one more, to hand the KV cache over.
//!
//! # Pace
//!
//! A moving mean of the ratio of the seconds per output token to those predicted. An endpoint begins with the fleet's
//! mean: with 1 it would seem the fastest of a slow fleet, and get every request.
//!
//! The pace says little of the engine, since streams stand still while it reads prompts. How slow a step is without that
//! nobody sees; the fleet's slope of the prefill is taken for it. An endpoint's own slope is too noisy: with it a fleet in
//! which two of eight were half as fast took 0.8 s to the first token instead of 0.1 s.
//!
//! # Lengths
//!
//! A moving mean of the output tokens of each model, which begins at 256. Nobody can know how long an answer will be, but
//! models and their uses have habits.
//!
//! # Caches
//!
//! How much of its prompts an endpoint has in its cache, against what the prefix index believed:
//! [`Correction`].
//!
//! # Failures
//!
//! Whether an endpoint fails the requests it gets, and when it may be tried again: `trouble`.
//!
//! # Who must not learn speeds
//!
//! A worker that does not know all requests of the endpoints, because it has a ledger of its own or other gateways send
//! there too, predicts a part of the wait. The slope says that this does not matter, and the rule goes blind. Such a
//! worker learns all but speeds.

mod fading;
mod points;
mod record;
#[cfg(test)]
mod tests;
mod trouble;

use std::time::Duration;

use crate::clock::Timestamp;
use crate::cost::Speed;
use crate::envelope;
use crate::id::EndpointId;
use crate::prefix::{Belief, Correction};
use crate::store::Store;
use crate::usage::Usage;

use fading::Fading;
use points::Points;
use record::{Endpoint, Record};
pub use trouble::Standing;
use trouble::Trouble;

/// How often a worker tells the others and hears from them. An answer takes longer.
const PERIOD: Duration = Duration::from_millis(200);

/// How often it tries if others write at the same moment; then again at the next tick.
const TRIES: u32 = 3;

/// What was observed of an endpoint counts this long after the last observation, if the pool has it no more. Workers with
/// an older configuration may still have it.
const LEFT_AFTER: Duration = Duration::from_secs(60);

/// What a first token keeps of its weight when the next one comes.
const KEEP_FIRST_TOKEN: f64 = 0.98;
/// The same for the pace of an answer.
const KEEP_PACE: f64 = 0.97;
/// For the length of an answer: half of what is known is of the last 14.
const KEEP_LENGTH: f64 = 0.95;
/// For the prefill of a request, of all endpoints.
const KEEP_PREFILL: f64 = 0.99;

/// Answers for which the fleet's pace stands at an endpoint without any.
const PACE_PRIOR: f64 = 1.0 / (1.0 - KEEP_PACE);
/// Tokens of an answer of a model that has not answered yet. Stands for one answer.
const LENGTH_PRIOR: f64 = 256.0;

/// How far from the fleet an endpoint can be.
const MAX_FROM_FLEET: f64 = 3.0;
/// How far from nominal the fleet and single observations of the pace can be.
const MAX_FROM_NOMINAL: f64 = 30.0;
/// Longest time to a first token or of a prefill that counts, in seconds.
const MAX_SECONDS: f64 = 600.0;
/// Most tokens an answer counts for: one runaway, or a server that lies, must not rule the mean.
const MAX_TOKENS: u32 = 1 << 17;

/// One worker's hand on what all have learned.
#[derive(Debug)]
pub struct Learner {
    key: Vec<u8>,
    learns_speeds: bool,
    /// As last read or written.
    known: Record,
    /// Observed since.
    news: Record,
    /// What `known` says of a new endpoint, and of each one.
    fleet: Speed,
    speeds: Vec<(EndpointId, Speed)>,
    /// Of those that failed lately; mostly none.
    troubled: Vec<(EndpointId, Trouble)>,
    /// When `known` was brought up to date.
    updated: Timestamp,
}

impl Learner {
    /// The hand on what is learned of `pool`. `learns_speeds`: the worker's ledger has all requests of its endpoints.
    pub fn new(pool: &str, learns_speeds: bool) -> Self {
        Self {
            key: format!("endpoint-picker/{pool}/learned").into_bytes(),
            learns_speeds,
            known: Record::default(),
            news: Record::default(),
            fleet: Speed::default(),
            speeds: Vec::new(),
            troubled: Vec::new(),
            updated: Timestamp::default(),
        }
    }

    /// A request was placed whose prefill takes this long at speed 1.
    pub fn observe_prefill(&mut self, seconds: f64) {
        if is_positive(seconds) {
            self.news.prefill.add(KEEP_PREFILL, [1.0, seconds.min(MAX_SECONDS)]);
        }
    }

    /// A first token came `observed` seconds after the pick; [`crate::cost::nominal_first_token`] had said `predicted`. What
    /// is not a positive number is ignored; 600 s is the most that counts.
    pub fn observe_first_token(&mut self, endpoint: EndpointId, predicted: f64, observed: f64, now: Timestamp) {
        if self.learns_speeds && is_positive(predicted) && is_positive(observed) {
            let (x, y) = (predicted.min(MAX_SECONDS), observed.min(MAX_SECONDS));
            self.news.endpoints.with(endpoint.0, now, |line| line.first_tokens.point(KEEP_FIRST_TOKEN, x, y));
        }
    }

    /// A stream took `observed` seconds per output token after the first; [`crate::cost::nominal_step`] had said `nominal`. What is not a positive number is ignored; a ratio
    /// counts within 1/30..=30.
    pub fn observe_decode(&mut self, endpoint: EndpointId, nominal: f64, observed: f64, now: Timestamp) {
        if self.learns_speeds && is_positive(nominal) && is_positive(observed) {
            let ratio = (observed / nominal).clamp(1.0 / MAX_FROM_NOMINAL, MAX_FROM_NOMINAL);
            self.news.endpoints.with(endpoint.0, now, |line| line.pace.add(KEEP_PACE, [1.0, ratio]));
        }
    }

    /// An answer of the model with this hash ended by itself after so many tokens.
    pub fn observe_output(&mut self, model: u64, tokens: u32, now: Timestamp) {
        let tokens = f64::from(tokens.min(MAX_TOKENS));
        self.news.models.with(model, now, |line| line.lengths.add(KEEP_LENGTH, [1.0, tokens]));
    }

    /// An answer told its usage; `belief` is what the index had said of its prompt. See [`Correction::learn`].
    pub fn observe_usage(
        &mut self,
        endpoint: EndpointId,
        belief: &Belief,
        usage: &Usage,
        now: Timestamp,
    ) -> Option<u64> {
        usage.cached_tokens?;
        let (known, mut aged) = (self.cache(endpoint), None);
        self.news.endpoints.with(endpoint.0, now, |line| aged = line.cache.learn(&known, belief, usage));
        aged
    }

    /// A request failed at the endpoint. `weight` is 1 for one that counts once.
    pub fn observe_failure(&mut self, endpoint: EndpointId, weight: f32, now: Timestamp) {
        self.news.endpoints.with(endpoint.0, now, |line| line.trouble.failed(weight, now));
    }

    /// A request may have failed at the endpoint. However many, they alone do not make it failing.
    pub fn observe_suspicion(&mut self, endpoint: EndpointId, weight: f32, now: Timestamp) {
        self.news.endpoints.with(endpoint.0, now, |line| line.trouble.suspected(weight, now));
    }

    /// The endpoint answered a request. To be noted only if it [failed lately](Self::is_troubled).
    pub fn observe_success(&mut self, endpoint: EndpointId, now: Timestamp) {
        self.news.endpoints.with(endpoint.0, now, |line| line.trouble.succeeded());
    }

    /// Whether the endpoint failed lately.
    pub fn is_troubled(&self, endpoint: EndpointId) -> bool {
        let news = || self.news.endpoints.get(endpoint.0).is_some_and(|line| !line.trouble.is_over());
        self.trouble(endpoint).is_some() || news()
    }

    /// Whether an endpoint may get a request.
    pub fn standing(&self, endpoint: EndpointId, now: Timestamp) -> Standing {
        self.trouble(endpoint).map_or(Standing::Sound, |trouble| trouble.standing(now))
    }

    /// Endpoints that are failing.
    pub fn failing(&self) -> usize {
        self.troubled.iter().filter(|(_, trouble)| trouble.is_failing()).count()
    }

    /// Takes the probe that is due at an endpoint, before any other worker does. False: one was faster. Either way it is no
    /// longer due.
    pub fn probe(&mut self, store: &dyn Store, endpoint: EndpointId, now: Timestamp) -> bool {
        for _ in 0..TRIES {
            let (mut record, cas) = self.read(store);
            let line = record.endpoints.get(endpoint.0).copied().unwrap_or_default();
            let due = line.trouble.standing(now) == Standing::Due;
            if due {
                record.endpoints.with(endpoint.0, now, |line| line.trouble.probe(now));
            }
            let taken = due && store.set(&self.key, &self.seal(&record), cas);
            self.know(record);
            if taken || !due {
                return taken;
            }
        }
        false
    }

    /// What is known of an endpoint's cache.
    pub fn cache(&self, endpoint: EndpointId) -> Correction {
        self.known.endpoints.get(endpoint.0).map(|line| line.cache).unwrap_or_default()
    }

    /// Seconds of prefill of a request at speed 1, the mean over the pool; `None` before the first.
    pub fn mean_prefill(&self) -> Option<f64> {
        let prefill = &self.known.prefill;
        (prefill.kept < 1.0).then(|| prefill.mean(0.0, 0.0))
    }

    /// What is known of an endpoint's speed; the fleet's if it has not answered yet.
    pub fn speed(&self, endpoint: EndpointId) -> Speed {
        let at = self.speeds.binary_search_by_key(&endpoint, |(id, _)| *id).ok();
        at.and_then(|at| self.speeds.get(at)).map_or(self.fleet, |(_, speed)| *speed)
    }

    /// Tokens to expect of an answer of the model with this hash, at most what the request asks for.
    pub fn expected_output(&self, model: u64, max_tokens: Option<u32>) -> u32 {
        let mean = self.known.models.get(model).map_or(LENGTH_PRIOR, |line| line.lengths.mean(LENGTH_PRIOR, 1.0));
        (mean.round() as u32).min(max_tokens.unwrap_or(u32::MAX))
    }

    /// Tells the others what was observed and hears from them, if it is time to. `pool` are the endpoints there are.
    pub fn tick(&mut self, store: &dyn Store, pool: &[EndpointId], now: Timestamp) {
        if self.updated <= now && now.since(self.updated) < PERIOD {
            return;
        }
        for _ in 0..TRIES {
            let (mut record, cas) = self.read(store);
            record.then(&self.news);
            record.endpoints.retain(|id, seen| now.since(seen) < LEFT_AFTER || pool.contains(&EndpointId(id)));
            if self.news.is_empty() || store.set(&self.key, &self.seal(&record), cas) {
                self.news = Record::default();
                self.updated = now;
                return self.know(record);
            }
        }
    }

    /// What all know, and the token to replace it.
    fn read(&self, store: &dyn Store) -> (Record, u32) {
        let found = store.get(&self.key);
        let sealed = found.value.as_deref().and_then(|value| envelope::open(&self.key, value));
        // What cannot be read was torn or is not ours; then this worker goes on from what it knew.
        let record = sealed.and_then(|sealed| Record::decode(sealed.payload)).unwrap_or(self.known.clone());
        (record, found.cas)
    }

    fn seal(&self, record: &Record) -> Vec<u8> {
        envelope::seal(&self.key, 0, &record.encode())
    }

    fn trouble(&self, endpoint: EndpointId) -> Option<&Trouble> {
        self.troubled.iter().find(|(id, _)| *id == endpoint).map(|(_, trouble)| trouble)
    }

    fn know(&mut self, record: Record) {
        let (mut points, mut pace) = (Points::default(), Fading::default());
        for (_, line) in record.endpoints.iter() {
            points.pool(&line.first_tokens);
            pace.pool(&line.pace);
        }
        let variance = points.variance();
        let fleet = points.fleet_slope().clamp(1.0 / MAX_FROM_NOMINAL, MAX_FROM_NOMINAL);
        self.fleet = Speed { prefill: fleet, decode: pace.mean(1.0, PACE_PRIOR), step: fleet };
        let speed = |(id, line): (u64, &Endpoint)| {
            let slope = line.first_tokens.endpoint_slope(fleet, variance);
            let prefill = slope.max(fleet / MAX_FROM_FLEET).min(fleet * MAX_FROM_FLEET);
            (EndpointId(id), Speed { prefill, decode: line.pace.mean(self.fleet.decode, PACE_PRIOR), step: fleet })
        };
        self.speeds = record.endpoints.iter().map(speed).collect();
        let troubled = record.endpoints.iter().filter(|(_, line)| !line.trouble.is_over());
        self.troubled = troubled.map(|(id, line)| (EndpointId(id), line.trouble)).collect();
        self.known = record;
    }
}

fn is_positive(number: f64) -> bool {
    number.is_finite() && number > 0.0
}
