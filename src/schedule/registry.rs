//! Every plugin by name. The configuration, its error messages and its documentation all read these tables.

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::deciders::{Always, PrefixBased};
use super::filters::{
    Decode, HeaderBasedTesting, Healthy, LabelSelector, LoraCapacity, NotFull, Prefill, PrefixCacheAffinity,
    SloHeadroomTier, Utilization,
};
use super::pickers::{MaxScore, Random, RoundRobin, WeightedRandom};
use super::scorers::{
    ActiveRequest, ContextLengthAware, ExpectedCost, KvCacheUtilization, Latency, LoadAware, LoraAffinity, NoHitLru,
    PrefixCache, Queue, RunningRequests, TokenLoad,
};
use super::{Decider, Filter, Picker, Scorer};
use crate::parameters::NoParameters;
use crate::saturation::{Concurrency, Detector, Utilization as Utilized};
use crate::session::Session;
use crate::strict::{self, ConfigError};

/// A plugin that can be named in a profile.
pub struct Plugin<T: ?Sized> {
    /// The `type` to write.
    pub name: &'static str,
    /// One line for the documentation.
    pub summary: &'static str,
    build: fn(Value) -> Result<Box<T>, ConfigError>,
}

/// All filters.
pub const FILTERS: &[Plugin<dyn Filter>] = &[
    Plugin {
        name: "healthy",
        summary: "Leaves out endpoints whose scrapes keep failing, unless all do.",
        build: |p| bare(p, Box::new(Healthy)),
    },
    Plugin {
        name: "lora-capacity",
        summary: "Leaves out endpoints whose adapter slots are all taken by other adapters, unless all are.",
        build: |p| bare(p, Box::new(LoraCapacity)),
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
        name: "label-selector-filter",
        summary: "Leaves only endpoints whose labels match, perhaps none. Parameters, as in Kubernetes: `matchLabels`, an \
                  object of labels and their values; `matchExpressions`, a list of objects with `key`, `operator` (`In`, \
                  `NotIn`, `Exists`, `DoesNotExist`) and `values`.",
        build: |p| Ok(with::<LabelSelector>(p)?),
    },
    Plugin {
        name: "decode-filter",
        summary: "Leaves only endpoints that generate answers, perhaps none: by the label `llm-d.ai/role`, which is \
                  `decode`, `prefill-decode`, `both`, `encode-prefill-decode` or missing.",
        build: |p| bare(p, Box::new(Decode)),
    },
    Plugin {
        name: "prefill-filter",
        summary: "Leaves only endpoints that read prompts for others, perhaps none: by the label `llm-d.ai/role`, which is \
                  `prefill`, `encode-prefill`, `prefill-decode`, `both` or `encode-prefill-decode`.",
        build: |p| bare(p, Box::new(Prefill)),
    },
    Plugin {
        name: "utilization-filter",
        summary: "Leaves only endpoints that are not too busy, perhaps none. Parameters: `conditions`, a list of objects with \
                  `metric` (`active-requests`, `running-requests`, `waiting-queue`, `kv-cache-utilization`) and `maxValue`, \
                  all to be met as far as the metric is known; `fallbackOnEmpty` (false), whether all stay if none meets \
                  them.",
        build: |p| Ok(with::<Utilization>(p)?),
    },
    Plugin {
        name: "context-length-aware",
        summary: "Leaves out endpoints that are meant for prompts of another length, unless all are. Parameters as of the \
                  scorer of this name; `enableFiltering` is true here.",
        build: |p| Ok(with::<ContextLengthAware>(p)?),
    },
    Plugin {
        name: "header-based-testing-filter",
        summary: "Leaves only endpoints that the request names in `test-epp-endpoint-selection`, `ip:port` or `ip` with \
                  commas between, perhaps none; all if it has no such header. For tests: with it clients choose their \
                  server.",
        build: |p| bare(p, Box::new(HeaderBasedTesting)),
    },
    Plugin {
        name: "session-affinity-filter",
        summary: "Leaves only the endpoint that has the request's session, if it is among the candidates and can be \
                  reached. Parameters: `strategy` (`encoded_endpoint_header`), where the session is told by an opaque token \
                  that an earlier answer gave, one made up or from another fleet being no session; or `session_id`, where \
                  the client chooses a name, for which all gateways draw the same endpoint by hash. `headerName` \
                  (`x-session-token` or `x-session-id`), the header that tells, one that begins with x-; or `cookie`, the cookie that does. \
                  `secret`, at least 16 bytes, without which tokens are good for one deployment of one gateway; keep it \
                  from clients. It leaves nowhere to fall back to; the scorer does.",
        build: |p| Ok(with::<Session>(p)?),
    },
    Plugin {
        name: "slo-headroom-tier-filter",
        summary: "Leaves only endpoints that are predicted to be as fast as the headers `x-llm-d-slo-ttft-ms`, milliseconds \
                  to the first token, and `x-llm-d-slo-tpot-ms`, per token after it, ask for, if there is one; \
                  `x-slo-ttft-ms` and `x-slo-tpot-ms` are read too. What is not a positive number asks for nothing. \
                  Parameter: `epsilonExploreNeg` (0.01), how often only the others stay.",
        build: |p| Ok(with::<SloHeadroomTier>(p)?),
    },
    Plugin {
        name: UTILIZATION,
        summary: "Leaves out endpoints that are full or told nothing lately, unless all are; see the detector of that name.",
        build: |p| Ok(Box::new(NotFull(with::<Utilized>(p)?))),
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
        build: |p| Ok(with::<Utilized>(p)?),
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
        build: |p| bare(p, Box::new(Queue)),
    },
    Plugin {
        name: "running-requests-size-scorer",
        summary: "Small running batch; relative to the other candidates.",
        build: |p| bare(p, Box::new(RunningRequests)),
    },
    Plugin {
        name: "kv-cache-utilization-scorer",
        summary: "Free KV cache.",
        build: |p| bare(p, Box::new(KvCacheUtilization)),
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
        build: |p| bare(p, Box::new(LoraAffinity)),
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
        name: "load-aware-scorer",
        summary: "Short queue in the engine, against a limit: 0.5 without one, falling to 0. Parameter: `threshold` (128), the \
                  waiting requests from which the score is 0.",
        build: |p| Ok(with::<LoadAware>(p)?),
    },
    Plugin {
        name: "no-hit-lru-scorer",
        summary: "For a prompt of which no candidate has a part cached: the last such prompt came there longest ago, or never. \
                  For others all score 0.5. Parameter: `lruSize` (1024), the endpoints remembered, at most 2048.",
        build: |p| Ok(with::<NoHitLru>(p)?),
    },
    Plugin {
        name: "context-length-aware",
        summary: "Meant for prompts of this length. Parameters: `label` (`llm-d.ai/context-length-range`), the label of an \
                  endpoint that says for which, `min-max` in tokens such as `0-8192`; `enableFiltering` (false), whether it \
                  also is the filter of this name, behind those listed.",
        build: |p| Ok(with::<ContextLengthAware>(p)?),
    },
    Plugin {
        name: "expected-cost-scorer",
        summary: "Few seconds pass because the request goes there: its wait, its own prefill and what it does to the \
                  streams that are there. Meant to be the only scorer. Parameter: `latencyGoal` (0.1), from 0, the first \
                  token, to 1, the whole answer.",
        build: |p| Ok(with::<ExpectedCost>(p)?),
    },
    Plugin {
        name: "session-affinity-scorer",
        summary: "The endpoint that has the request's session 1, the others 0. Parameters: those of \
                  `session-affinity-filter`; if a profile has both, they must be the same.",
        build: |p| Ok(with::<Session>(p)?),
    },
    Plugin {
        name: "latency-scorer",
        summary: "Predicted times against those that the headers of `slo-headroom-tier-filter` ask for: fast enough before \
                  idle before only later tokens too slow before only the first too late before both; without such headers \
                  the soonest. Parameters: `ttftWeight` (0.8), `tpotWeight` (0.2), `headroomSelectionStrategy` (`least`), \
                  the slowest of those that are fast enough first, or `most`, the fastest.",
        build: |p| Ok(with::<Latency>(p)?),
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

/// All deciders.
pub const DECIDERS: &[Plugin<dyn Decider>] = &[
    Plugin {
        name: "prefix-based-pd-decider",
        summary: "Prompts of at least `promptTokens` (0) tokens of which at least `nonCachedTokens` (0, which stands for \
                  never) are not cached where the answer is generated.",
        build: |p| Ok(with::<PrefixBased>(p)?),
    },
    Plugin { name: "always-disagg-pd-decider", summary: "Every prompt.", build: |p| bare(p, Box::new(Always)) },
];

impl<T: ?Sized> Plugin<T> {
    /// The plugin with `parameters`, an object.
    ///
    /// # Errors
    /// A parameter that it does not have, or a value out of range.
    pub fn build(&self, parameters: Value) -> Result<Box<T>, ConfigError> {
        (self.build)(parameters)
    }
}

/// A plugin without parameters. All of them read the same nothing, since each type that is read costs module size.
fn bare<T: ?Sized>(parameters: Value, plugin: Box<T>) -> Result<Box<T>, ConfigError> {
    strict::from(parameters).map(|NoParameters {}| plugin)
}

fn with<P: DeserializeOwned>(parameters: Value) -> Result<Box<P>, ConfigError> {
    strict::from(parameters).map(Box::new)
}
