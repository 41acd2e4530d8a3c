//! Every plugin by name. The configuration, its error messages and its documentation all read these tables.

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::filters::{Healthy, LoraCapacity};
use super::pickers::{MaxScore, Random, WeightedRandom};
use super::scorers::{ActiveRequest, KvCacheUtilization, LoraAffinity, PrefixCache, Queue, RunningRequests};
use super::{Filter, Picker, Scorer};

/// A plugin that can be named in a profile.
pub struct Plugin<T: ?Sized> {
    /// The `type` to write.
    pub name: &'static str,
    /// One line for the documentation.
    pub summary: &'static str,
    build: fn(&Value) -> Result<Box<T>, BadParameters>,
}

/// Parameters a plugin does not take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadParameters {
    /// Path below `parameters`; empty for all of it.
    pub path: String,
    /// What is wrong and what is allowed.
    pub message: String,
}

/// All filters.
pub const FILTERS: &[Plugin<dyn Filter>] = &[
    Plugin {
        name: "healthy",
        summary: "Leaves out endpoints whose scrapes keep failing, unless all do.",
        build: |p| Ok(Box::new(parameters::<Healthy>(p)?)),
    },
    Plugin {
        name: "lora-capacity",
        summary: "Leaves out endpoints whose adapter slots are all taken by other adapters, unless all are.",
        build: |p| Ok(Box::new(parameters::<LoraCapacity>(p)?)),
    },
];

/// All scorers.
pub const SCORERS: &[Plugin<dyn Scorer>] = &[
    Plugin {
        name: "queue-scorer",
        summary: "Short queue in the engine; relative to the other candidates.",
        build: |p| Ok(Box::new(parameters::<Queue>(p)?)),
    },
    Plugin {
        name: "running-requests-size-scorer",
        summary: "Small running batch; relative to the other candidates.",
        build: |p| Ok(Box::new(parameters::<RunningRequests>(p)?)),
    },
    Plugin {
        name: "kv-cache-utilization-scorer",
        summary: "Free KV cache.",
        build: |p| Ok(Box::new(parameters::<KvCacheUtilization>(p)?)),
    },
    Plugin {
        name: "prefix-cache-scorer",
        summary: "Share of the prompt believed to be cached there. \
                  Parameters: `matchLengthWeight` (0), `matchLengthScaleTokens` (8192).",
        build: |p| Ok(Box::new(parameters::<PrefixCache>(p)?)),
    },
    Plugin {
        name: "lora-affinity-scorer",
        summary: "The adapter is loaded there 1, room for it 0.8, it waits there 0.6, else 0.",
        build: |p| Ok(Box::new(parameters::<LoraAffinity>(p)?)),
    },
    Plugin {
        name: "active-request-scorer",
        summary: "Few requests of this proxy in flight there. Parameters: `idleThreshold` (0), `maxBusyScore` (1).",
        build: |p| Ok(Box::new(parameters::<ActiveRequest>(p)?)),
    },
];

/// All pickers.
pub const PICKERS: &[Plugin<dyn Picker>] = &[
    Plugin {
        name: "max-score-picker",
        summary: "The highest total, at random among equals. Parameter: `maxNumOfEndpoints` (1).",
        build: |p| Ok(Box::new(parameters::<MaxScore>(p)?)),
    },
    Plugin {
        name: "weighted-random-picker",
        summary: "At random in proportion to the total. Parameter: `maxNumOfEndpoints` (1).",
        build: |p| Ok(Box::new(parameters::<WeightedRandom>(p)?)),
    },
    Plugin {
        name: "random-picker",
        summary: "Any candidate. Parameter: `maxNumOfEndpoints` (1).",
        build: |p| Ok(Box::new(parameters::<Random>(p)?)),
    },
];

impl<T: ?Sized> Plugin<T> {
    /// The plugin called `name`, or else a message that lists the known ones.
    pub(super) fn find(table: &'static [Self], name: &str) -> Result<&'static Self, String> {
        table.iter().find(|plugin| plugin.name == name).ok_or_else(|| {
            let known: Vec<_> = table.iter().map(|plugin| plugin.name).collect();
            format!("unknown plugin `{name}`; known are {}", known.join(", "))
        })
    }

    /// The plugin with `parameters`, an object or null.
    pub(super) fn build(&self, parameters: &Value) -> Result<Box<T>, BadParameters> {
        (self.build)(parameters)
    }
}

fn parameters<P: DeserializeOwned + Default>(written: &Value) -> Result<P, BadParameters> {
    if written.is_null() {
        return Ok(P::default());
    }
    serde_path_to_error::deserialize(written).map_err(|error| BadParameters {
        path: Some(error.path().to_string()).filter(|path| path != ".").unwrap_or_default(),
        message: error.inner().to_string(),
    })
}
