//! The rules of the field, a file a rule.
//!
//! All are given the same: an index of what was sent where (the picker's own, with the engine's real capacity), a book of
//! what is in flight (opened when placed, told of first token and end), and the scraped gauges. So what differs is the
//! rule. They are written anew from their sources' formulas, with the defaults found there.

mod aibrix;
mod dynamo;
mod epp;
mod least_request;
mod lmetric;
mod picker;
mod preble;
mod reference;
mod round_robin;
mod sglang;
mod sticky;
#[cfg(test)]
mod tests;
mod tracked;
mod wait_and_prefill;

use std::fmt;
use std::str::FromStr;

use endpoint_picker::config::ConfigError;
use rand_pcg::Pcg64;
use serde::{Serialize, Serializer};

use super::router::{Gauges, Router};
use super::trace::Call;
use crate::engine::Outcome;

pub use picker::configured;
use tracked::Tracked;
pub use tracked::{Cached, Fleet};

/// Chooses an engine.
pub(super) trait Rule {
    /// The engine for `call`.
    fn choose(&mut self, call: &Call, view: &View<'_>, random: &mut Pcg64) -> usize;

    /// The call was placed.
    fn placed(&mut self, _id: usize, _call: &Call, _engine: usize) {}

    /// Its first token is back.
    fn first_token(&mut self, _id: usize, _now: f64) {}

    /// It has ended; `None` if the engine did not take it.
    fn finished(&mut self, _id: usize, _outcome: Option<&Outcome>, _now: f64) {}

    /// An engine's metrics were read.
    fn scraped(&mut self, _engine: usize, _gauges: &Gauges) {}
}

/// What a rule may look at.
pub(super) struct View<'a> {
    /// The time.
    pub(super) now: f64,
    /// One for each engine; at least one.
    pub(super) endpoints: &'a [Endpoint],
}

/// An engine as seen from outside, by one call.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Endpoint {
    /// The last scrape.
    pub(super) gauges: Gauges,
    /// Tokens its KV cache holds.
    pub(super) capacity: u32,
    /// Requests in flight.
    pub(super) requests: u32,
    /// Of these, how many have had their first token.
    pub(super) decoding: u32,
    /// Uncached prompt tokens of those that have not.
    pub(super) pending: u64,
    /// Prompt tokens of the call it is believed to have cached; less than the prompt.
    pub(super) cached: u32,
    /// The same as a share of the prompt's full blocks, 0 to 1.
    pub(super) matched: f64,
}

impl Endpoint {
    /// Prompt tokens of the call it would have to compute.
    pub(super) fn uncached(&self, call: &Call) -> u64 {
        u64::from(call.engine.tokens.saturating_sub(self.cached))
    }
}

/// A rule by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleKind {
    /// In turn.
    RoundRobin,
    /// Fewest requests in flight.
    LeastRequest,
    /// The endpoint picker's built-in blend: queue 2, KV cache 2, prefix 3.
    EppDefault,
    /// llm-d's default of 2026: where the prefix is, unless the wait there is too long.
    Sticky,
    /// SGLang's cache-aware router.
    SglangCacheAware,
    /// AIBrix' prefix-cache rule.
    AibrixPrefixCache,
    /// Preble's rule in the form AIBrix has it.
    Preble,
    /// Dynamo's KV router as it comes.
    Dynamo,
    /// Dynamo's with `prefill_load_scale` 16, as its authors tune it.
    Dynamo16,
    /// New prefill tokens times batch size.
    Lmetric,
    /// Wait plus own prefill, in seconds.
    WaitAndPrefill,
    /// The picker itself.
    Picker,
    /// The expected cost, written a second time as a check.
    Reference,
}

impl RuleKind {
    /// All rules and their names on the command line.
    pub const ALL: [(Self, &'static str); 13] = [
        (Self::RoundRobin, "round-robin"),
        (Self::LeastRequest, "least-request"),
        (Self::EppDefault, "epp-default"),
        (Self::Sticky, "sticky-until-saturated"),
        (Self::SglangCacheAware, "sglang-cache-aware"),
        (Self::AibrixPrefixCache, "aibrix-prefix-cache"),
        (Self::Preble, "preble"),
        (Self::Dynamo, "dynamo"),
        (Self::Dynamo16, "dynamo-16"),
        (Self::Lmetric, "lmetric"),
        (Self::WaitAndPrefill, "wait-and-prefill"),
        (Self::Picker, "picker"),
        (Self::Reference, "reference"),
    ];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(kind, _)| *kind == self).map_or("", |(_, name)| name)
    }

    /// A router for each of `fleet.workers` workers; the other rules need one only if all share what they know. Errors: a
    /// configuration of the picker that it refuses.
    pub fn routers(self, fleet: &Fleet) -> Result<Vec<Box<dyn Router>>, ConfigError> {
        if self == Self::Picker {
            let workers = picker::workers(picker::configured(&fleet.config, fleet)?, fleet);
            return Ok(workers.into_iter().map(|worker| Box::new(worker) as Box<dyn Router>).collect());
        }
        let count = if fleet.shared { 1 } else { fleet.workers.max(1) };
        Ok((0..count as u64).filter_map(|worker| self.router(fleet, worker)).collect())
    }

    fn router(self, fleet: &Fleet, worker: u64) -> Option<Box<dyn Router>> {
        fn tracked(rule: impl Rule + 'static, fleet: &Fleet, worker: u64) -> Box<dyn Router> {
            Box::new(Tracked::new(rule, fleet, worker))
        }
        Some(match self {
            // Neighbouring workers do not all begin with the first engine.
            Self::RoundRobin => tracked(round_robin::RoundRobin::starting_at(worker as usize), fleet, worker),
            Self::LeastRequest => tracked(least_request::LeastRequest, fleet, worker),
            Self::EppDefault => tracked(epp::Blend::default(), fleet, worker),
            Self::Sticky => tracked(sticky::Sticky::default(), fleet, worker),
            Self::SglangCacheAware => tracked(sglang::CacheAware::new(fleet.engines()), fleet, worker),
            Self::AibrixPrefixCache => tracked(aibrix::PrefixCache::default(), fleet, worker),
            Self::Preble => tracked(preble::Preble::new(fleet.engines()), fleet, worker),
            Self::Dynamo => tracked(dynamo::KvRouter::new(1.0, fleet.engines()), fleet, worker),
            Self::Dynamo16 => tracked(dynamo::KvRouter::new(16.0, fleet.engines()), fleet, worker),
            Self::Lmetric => tracked(lmetric::Lmetric, fleet, worker),
            Self::WaitAndPrefill => tracked(wait_and_prefill::rule(fleet), fleet, worker),
            Self::Reference => tracked(reference::Reference::new(Default::default(), fleet), fleet, worker),
            Self::Picker => return None,
        })
    }
}

impl Serialize for RuleKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl FromStr for RuleKind {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|(_, known)| *known == name);
        found.map(|(kind, _)| *kind).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|(_, name)| *name).collect();
            format!("no rule {name:?}; there are {}", names.join(", "))
        })
    }
}

impl fmt::Display for RuleKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The endpoint with the lowest cost; a random one of those that share it.
pub(super) fn cheapest<'a>(
    endpoints: impl IntoIterator<Item = (usize, &'a Endpoint)>,
    random: &mut Pcg64,
    cost: impl Fn(&Endpoint) -> f64,
) -> Option<usize> {
    use rand::RngExt;
    let (mut best, mut lowest, mut ties) = (None, f64::INFINITY, 0u32);
    for (place, endpoint) in endpoints {
        let cost = cost(endpoint);
        if cost < lowest || best.is_none() {
            (best, lowest, ties) = (Some(place), cost, 1);
        } else if cost == lowest {
            ties += 1;
            if random.random_range(0..ties) == 0 {
                best = Some(place);
            }
        }
    }
    best
}
