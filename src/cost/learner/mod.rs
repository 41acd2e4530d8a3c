//! How fast each endpoint is, learned from its answers.
//!
//! **Prefill.** The time to the first token, as it was and as predicted at speed 1, of the last 50 requests or so is put
//! through a linear regression `observed = c0 + s·predicted`. The intercept `c0` takes what has nothing to do with the
//! prompt, such as the network: without it, as with a mean of ratios, short prompts make an endpoint look slow, it is
//! sent short prompts only, and the fleet falls over. What few requests say is noise, so the slope is drawn to the
//! fleet's, the more the fewer they are and the less their lengths differ: ridge regression with the weight
//! `0.3·Var(predicted)·max(1, 30/n)`. It also never leaves a third to three times the fleet's. The fleet's own slope
//! starts at 1 and is drawn there with `0.3·Var·30/n`, which fades.
//!
//! **Decode.** A moving mean of the ratio of the seconds per output token to those predicted. A new endpoint begins with the
//! fleet's mean: with 1 it would seem the fastest of a slow fleet, and get every request.
//!
//! The variance is the fleet's, not the endpoint's own: an endpoint whose requests are all alike tells nothing of a slope.
//!
//! Learn only where the ledger sees all requests of the endpoints. A worker that knows a part of the queue predicts a part of
//! the wait; the slope says that this does not matter, and the rule goes blind. There, use [`Learner::disabled`].

#[cfg(test)]
mod tests;

use crate::id::EndpointId;

use super::Speed;
use super::recent::Recent;

/// What an observation keeps of its weight when the next one comes.
const KEEP: f64 = 0.98;
/// Weight of a new ratio in the mean of decode speeds.
const DECODE_RATE: f64 = 0.03;
/// Weight of the fleet's slope, in variances.
const SHRINKAGE: f64 = 0.3;
/// Observations below which the fleet's slope weighs more.
const FEW: f64 = 30.0;
/// How far from the fleet an endpoint can be.
const MAX_FROM_FLEET: f64 = 3.0;
/// How far from nominal the fleet and single observations of the pace can be.
const MAX_FROM_NOMINAL: f64 = 30.0;
/// Longest time to a first token that counts, in seconds.
const MAX_SECONDS: f64 = 600.0;
/// Endpoints known at once.
const MAX_ENDPOINTS: usize = 4096;

/// Learns the speed of endpoints.
#[derive(Debug)]
pub struct Learner {
    enabled: bool,
    endpoints: Recent<Endpoint>,
    fleet: Endpoint,
}

#[derive(Clone, Copy, Debug)]
struct Endpoint {
    first_tokens: Sums,
    decode: f64,
}

/// The sums of a regression with forgetting.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    n: f64,
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
}

impl Default for Learner {
    fn default() -> Self {
        Self {
            enabled: true,
            endpoints: Recent::new(MAX_ENDPOINTS),
            fleet: Endpoint { first_tokens: Sums::default(), decode: 1.0 },
        }
    }
}

impl Learner {
    /// One that ignores what it is told and knows every endpoint as nominal.
    pub fn disabled() -> Self {
        Self { enabled: false, ..Self::default() }
    }

    /// A first token came `observed` seconds after the pick; [`super::nominal_first_token`] had said `predicted`. What is
    /// not a positive number is ignored; 600 s is the most that counts.
    pub fn observe_first_token(&mut self, endpoint: EndpointId, predicted: f64, observed: f64) {
        if !self.enabled || !is_positive(predicted) || !is_positive(observed) {
            return;
        }
        let (x, y) = (predicted.min(MAX_SECONDS), observed.min(MAX_SECONDS));
        self.endpoint(endpoint).first_tokens.add(x, y, KEEP);
        let keep = 1.0 - (1.0 - KEEP) / self.known();
        self.fleet.first_tokens.add(x, y, keep);
    }

    /// A stream took `observed` seconds per output token after the first;
    /// [`super::Constants::decode_step_seconds`] had said `nominal`. What is not a positive number is ignored; a ratio
    /// counts within 1/30..=30.
    pub fn observe_decode(&mut self, endpoint: EndpointId, nominal: f64, observed: f64) {
        if !self.enabled || !is_positive(nominal) || !is_positive(observed) {
            return;
        }
        let ratio = (observed / nominal).clamp(1.0 / MAX_FROM_NOMINAL, MAX_FROM_NOMINAL);
        let endpoint = self.endpoint(endpoint);
        endpoint.decode += DECODE_RATE * (ratio - endpoint.decode);
        self.fleet.decode += DECODE_RATE / self.known() * (ratio - self.fleet.decode);
    }

    /// What is known of an endpoint's speed; the fleet's if it has not answered yet.
    pub fn speed(&self, endpoint: EndpointId) -> Speed {
        let fleet = self.fleet_slope();
        let Some(known) = self.endpoints.get(endpoint.0) else {
            return Speed { prefill: fleet, decode: self.fleet.decode };
        };
        let sums = &known.first_tokens;
        let weight = SHRINKAGE * self.fleet.first_tokens.variance() * (FEW / sums.n.max(1.0)).max(1.0);
        let slope = sums.slope(fleet, weight);
        Speed { prefill: slope.clamp(fleet / MAX_FROM_FLEET, fleet * MAX_FROM_FLEET), decode: known.decode }
    }

    fn fleet_slope(&self) -> f64 {
        let sums = &self.fleet.first_tokens;
        sums.slope(1.0, SHRINKAGE * sums.variance() * FEW / sums.n.max(1.0))
            .clamp(1.0 / MAX_FROM_NOMINAL, MAX_FROM_NOMINAL)
    }

    fn endpoint(&mut self, id: EndpointId) -> &mut Endpoint {
        let decode = self.fleet.decode;
        self.endpoints.write(id.0, || Endpoint { first_tokens: Sums::default(), decode })
    }

    /// Endpoints known, at least one.
    fn known(&self) -> f64 {
        self.endpoints.len().max(1) as f64
    }
}

impl Sums {
    fn add(&mut self, x: f64, y: f64, keep: f64) {
        self.n = keep * self.n + 1.0;
        self.x = keep * self.x + x;
        self.y = keep * self.y + y;
        self.xx = keep * self.xx + x * x;
        self.xy = keep * self.xy + x * y;
    }

    /// The slope of y over x, drawn to `target` with this weight; `target` where nothing else is known.
    fn slope(&self, target: f64, weight: f64) -> f64 {
        let weighed = self.variance() + weight;
        if is_positive(weighed) { (self.covariance() + weight * target) / weighed } else { target }
    }

    fn variance(&self) -> f64 {
        if self.n == 0.0 {
            return 0.0;
        }
        let mean = self.x / self.n;
        let variance = self.xx / self.n - mean * mean;
        // What rounding leaves of equal numbers.
        if variance > 1e-9 * mean * mean { variance } else { 0.0 }
    }

    fn covariance(&self) -> f64 {
        if self.variance() == 0.0 { 0.0 } else { self.xy / self.n - self.x / self.n * (self.y / self.n) }
    }
}

fn is_positive(number: f64) -> bool {
    number.is_finite() && number > 0.0
}
