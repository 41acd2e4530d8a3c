//! Engines by name: the built-in ones and those of the configuration.

use super::name::Name;
use super::path::HttpPath;
use super::{ConfigError, choices};
use crate::scrape::{CustomSignals, Engine, EngineSpec, MetricSpec};
use serde::{Deserialize, Deserializer};
use std::sync::Arc;

/// The name of the engine that is told by its metrics.
pub(super) const AUTO: &str = "auto";
const DEFAULT_PATH: &str = "/metrics";
const NO_METRIC: &str = "names no metric; at least one of `waiting`, `running`, `kv_usage`, `block_size`, `num_blocks`, \
                         `lora` is needed";

/// A model server that is not built in, or that names its metrics differently. A metric is given by its name as it
/// stands in the server's text. `name{label="value"}` takes only the series with that label, `name[label]` reads the number
/// from a label instead of the value, and `a + b` adds two. At least one signal is needed; what a server does not tell is
/// left out and counts as unknown.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenEngine {
    /// The name by which endpoints refer to it in `engine`. No name of a built-in engine.
    name: Name,
    /// Where the server answers with its metrics, for endpoints that do not say. `/metrics` if left out.
    metrics_path: Option<HttpPath>,
    /// Requests that wait in the server's queue.
    #[serde(default, deserialize_with = "metric")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Metric>"))]
    waiting: Option<MetricSpec>,
    /// Requests in the running batch.
    #[serde(default, deserialize_with = "metric")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Metric>"))]
    running: Option<MetricSpec>,
    /// Share of the KV cache in use by running requests, 0 to 1.
    #[serde(default, deserialize_with = "metric")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Metric>"))]
    kv_usage: Option<MetricSpec>,
    /// Tokens in a block of the KV cache.
    #[serde(default, deserialize_with = "metric")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Metric>"))]
    block_size: Option<MetricSpec>,
    /// Blocks in the KV cache.
    #[serde(default, deserialize_with = "metric")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Metric>"))]
    num_blocks: Option<MetricSpec>,
    /// Adapters (LoRA), in the labels that vLLM has: `max_lora`, `running_lora_adapters`, `waiting_lora_adapters`.
    #[serde(default, deserialize_with = "metric")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Metric>"))]
    lora: Option<MetricSpec>,
}

/// A metric as written, for the schema.
#[cfg(feature = "schema")]
#[derive(schemars::JsonSchema)]
#[schemars(inline, extend("title" = "metric"))]
struct Metric(#[allow(dead_code)] String);

fn metric<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<MetricSpec>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    let parse = |text: String| {
        MetricSpec::parse(&text).map_err(|error| {
            serde::de::Error::custom(format!(r#"{text:?} is not a metric as name or name{{label="value"}}: {error}"#))
        })
    };
    text.map(parse).transpose()
}

impl WrittenEngine {
    fn signals(&self) -> CustomSignals {
        CustomSignals {
            waiting: self.waiting.clone(),
            running: self.running.clone(),
            kv_usage: self.kv_usage.clone(),
            block_size: self.block_size.clone(),
            num_blocks: self.num_blocks.clone(),
            lora: self.lora.clone(),
        }
    }
}

/// An engine as endpoints use it.
pub(super) struct Known {
    pub(super) spec: Arc<EngineSpec>,
    pub(super) metrics_path: String,
}

/// All engines that an endpoint can name.
pub(super) struct Engines(Vec<(String, Known)>);

impl Engines {
    /// The built-in engines and the written ones. Paths of errors begin at the list.
    pub(super) fn resolve(written: &[WrittenEngine]) -> Result<Self, ConfigError> {
        let known = |spec, path: &str| Known { spec: Arc::new(spec), metrics_path: path.to_owned() };
        let mut engines = vec![(AUTO.to_owned(), known(EngineSpec::auto(), DEFAULT_PATH))];
        for engine in Engine::ALL {
            engines.push((engine.name().to_owned(), known(EngineSpec::builtin(engine), engine.metrics_path())));
        }
        for (i, engine) in written.iter().enumerate() {
            let Name(name) = &engine.name;
            let signals = engine.signals();
            if signals == CustomSignals::default() {
                return Err(ConfigError::at(format!("[{i}]"), format!("the engine {name} {NO_METRIC}")));
            }
            let path = engine.metrics_path.as_ref().map_or(DEFAULT_PATH, |HttpPath(path)| path);
            if engines.iter().any(|(taken, _)| taken == name) {
                return Err(ConfigError::at(
                    format!("[{i}].name"),
                    format!("an engine named {name} is already there; choose another name"),
                ));
            }
            engines.push((name.clone(), known(EngineSpec::custom(signals), path)));
        }
        Ok(Self(engines))
    }

    /// The engine of that name, or a message that lists the names.
    pub(super) fn get(&self, name: &str) -> Result<&Known, String> {
        let found = self.0.iter().find(|(known, _)| known == name).map(|(_, engine)| engine);
        found.ok_or_else(|| {
            format!("unknown engine {name:?}; {}", choices(name, self.0.iter().map(|(known, _)| known.as_str())))
        })
    }
}
