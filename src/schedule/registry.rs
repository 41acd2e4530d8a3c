//! Every plugin by name. The configuration, its error messages and its documentation all read these tables.

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::filters::{Healthy, LoraCapacity, NotFull, PrefixCacheAffinity};
use super::pickers::{MaxScore, Random, RoundRobin, WeightedRandom};
use super::scorers::{
    ActiveRequest, ExpectedCost, KvCacheUtilization, LoraAffinity, PrefixCache, Queue, RunningRequests, TokenLoad,
};
use super::{Filter, Picker, Scorer};
use crate::saturation::{Concurrency, Detector, Utilization};

/// Parameters that a plugin does not take: where, and what is wrong.
pub type BadParameters = serde_path_to_error::Error<serde_json::Error>;

/// A plugin that can be named in a profile.
pub struct Plugin<T: ?Sized> {
    /// The `type` to write.
    pub name: &'static str,
    /// One line for the documentation.
    pub summary: &'static str,
    build: fn(Value) -> Result<Box<T>, BadParameters>,
}

/// All filters.
pub const FILTERS: &[Plugin<dyn Filter>] = &[
    Plugin {
        name: "healthy",
        summary: "Leaves out endpoints whose scrapes keep failing, unless all do.",
        build: |p| Ok(with::<Healthy>(p)?),
    },
    Plugin {
        name: "lora-capacity",
        summary: "Leaves out endpoints whose adapter slots are all taken by other adapters, unless all are.",
        build: |p| Ok(with::<LoraCapacity>(p)?),
    },
    Plugin {
        name: "prefix-cache-affinity-filter",
        summary: "Leaves only endpoints that hold most of the prompt, unless there is none or the first token would come \
                  too much later there than elsewhere. Parameters: `affinityThreshold` (0.8), the share of the prompt; \
                  `explorationProbability` (0), how often all stay; `maxTTFTPenaltyMs` (18000), how much later, 0 for no \
                  limit; `peakPrefillThroughput` (15928), the prompt tokens an engine reads in a second, by which the \
                  first token is reckoned from the tokens in flight.",
        build: |p| Ok(with::<PrefixCacheAffinity>(p)?),
    },
    Plugin {
        name: UTILIZATION,
        summary: "Leaves out endpoints that are full or told nothing lately, unless all are; see the detector of that name.",
        build: |p| Ok(Box::new(NotFull(with::<Utilization>(p)?))),
    },
    Plugin {
        name: CONCURRENCY,
        summary: "Leaves out endpoints that are full, unless all are; see the detector of that name.",
        build: |p| Ok(Box::new(NotFull(with::<Concurrency>(p)?))),
    },
];

/// The detector that is used where none is named.
pub const UTILIZATION: &str = "utilization-detector";
const CONCURRENCY: &str = "concurrency-detector";

/// All detectors of saturation.
pub const DETECTORS: &[Plugin<dyn Detector>] = &[
    Plugin {
        name: UTILIZATION,
        summary: "By what the endpoints told lately: the mean of the greater of queued requests / `queueDepthThreshold` (5) \
                  and used KV cache / `kvCacheUtilThreshold` (0.8). Parameters also: `metricsStalenessThreshold`, how old a \
                  signal may be, at least twice `scrape.interval` and that or 200ms, whichever is longer, if left out; \
                  `stalenessPolicy`, whether an endpoint with none counts as `saturated` or is left out (`ignore`); \
                  `headroom` (0), as a filter, how far above the thresholds an endpoint may be, 0.2 for a fifth.",
        build: |p| Ok(with::<Utilization>(p)?),
    },
    Plugin {
        name: CONCURRENCY,
        summary: "By what this proxy has in flight, of what may be in flight at all endpoints. Parameters: `mode`, \
                  `requests`, uncached prompt `tokens` that wait for their first token, or `hybrid`, the mean of the greater \
                  of both; `maxConcurrency` (100) and `maxTokenConcurrency` (1000000), for each endpoint; `headroom` (0), as \
                  a filter, how far above these an endpoint may be, 0.2 for a fifth. With `ledger: private` each worker \
                  counts its own requests only, and the statistics none.",
        build: |p| Ok(with::<Concurrency>(p)?),
    },
];

/// All scorers.
pub const SCORERS: &[Plugin<dyn Scorer>] = &[
    Plugin {
        name: "queue-scorer",
        summary: "Short queue in the engine; relative to the other candidates.",
        build: |p| Ok(with::<Queue>(p)?),
    },
    Plugin {
        name: "running-requests-size-scorer",
        summary: "Small running batch; relative to the other candidates.",
        build: |p| Ok(with::<RunningRequests>(p)?),
    },
    Plugin {
        name: "kv-cache-utilization-scorer",
        summary: "Free KV cache.",
        build: |p| Ok(with::<KvCacheUtilization>(p)?),
    },
    Plugin {
        name: "prefix-cache-scorer",
        summary: "Share of the prompt believed to be cached there. \
                  Parameters: `matchLengthWeight` (0), `matchLengthScaleTokens` (8192).",
        build: |p| Ok(with::<PrefixCache>(p)?),
    },
    Plugin {
        name: "lora-affinity-scorer",
        summary: "The adapter is loaded there 1, room for it 0.8, it waits there 0.6, else 0.",
        build: |p| Ok(with::<LoraAffinity>(p)?),
    },
    Plugin {
        name: "active-request-scorer",
        summary: "Few requests of this proxy in flight there. Parameters: `idleThreshold` (0), `maxBusyScore` (1).",
        build: |p| Ok(with::<ActiveRequest>(p)?),
    },
    Plugin {
        name: "token-load-scorer",
        summary: "Few prompt tokens to read, in flight there and of this request. Parameter: `queueThresholdTokens` \
                  (4194304), from which the score is 0.",
        build: |p| Ok(with::<TokenLoad>(p)?),
    },
    Plugin {
        name: "expected-cost-scorer",
        summary: "Few seconds pass because the request goes there: its wait, its own prefill and what it does to the \
                  streams that are there. Meant to be the only scorer. Parameter: `latencyGoal` (0.1), from 0, the first \
                  token, to 1, the whole answer.",
        build: |p| Ok(with::<ExpectedCost>(p)?),
    },
];

/// All pickers.
pub const PICKERS: &[Plugin<dyn Picker>] = &[
    Plugin {
        name: "max-score-picker",
        summary: "The highest total, at random among equals. Parameter: `maxNumOfEndpoints` (1).",
        build: |p| Ok(with::<MaxScore>(p)?),
    },
    Plugin {
        name: "weighted-random-picker",
        summary: "At random in proportion to the total. Parameter: `maxNumOfEndpoints` (1).",
        build: |p| Ok(with::<WeightedRandom>(p)?),
    },
    Plugin {
        name: "random-picker",
        summary: "Any candidate. Parameter: `maxNumOfEndpoints` (1).",
        build: |p| Ok(with::<Random>(p)?),
    },
    Plugin {
        name: "round-robin-picker",
        summary: "One candidate after the other, whatever their totals; each worker begins at one of its own. Parameter: \
                  `maxNumOfEndpoints` (1).",
        build: |p| Ok(with::<RoundRobin>(p)?),
    },
];

impl<T: ?Sized> Plugin<T> {
    /// The plugin with `parameters`, an object.
    ///
    /// # Errors
    /// A parameter that it does not have, or a value out of range.
    pub fn build(&self, parameters: Value) -> Result<Box<T>, BadParameters> {
        (self.build)(parameters)
    }
}

fn with<P: DeserializeOwned>(parameters: Value) -> Result<Box<P>, BadParameters> {
    serde_path_to_error::deserialize(parameters).map(Box::new)
}
