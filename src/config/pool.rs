//! The pool: which model servers there are.

use super::ConfigError;
use super::address::Address;
use super::discovery::WrittenDiscovery;
use super::engine::{AUTO, Engines};
use super::model::ModelName;
use super::name::Name;
use super::path::HttpPath;
use super::profile::WrittenProfile;
use super::ready::some_named_or_written;
use crate::fleet::{Discovery, MOST_ENDPOINTS, Target};
use crate::period::Period;
use hashbrown::HashMap;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// The model servers of a pool.
#[derive(Clone, Debug)]
pub struct Pool {
    /// Part of the keys in shared data: pools of one proxy that differ in name share nothing.
    pub name: String,
    /// At most 1024 servers, no address twice, in the order written; at least one if there is no `discovery`.
    pub endpoints: Vec<Target>,
    /// Where further servers are found.
    pub discovery: Option<Discovery>,
    /// How long a server new to the pool is spared.
    pub warmup: Duration,
    /// A server that fails its requests gets few.
    pub passive_health: bool,
}

/// The model servers among which requests are spread.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenPool {
    /// Names the pool in shared data, logs and metrics. Pools of one proxy need different names; the scraper and the
    /// pickers of one pool need the same.
    #[serde(default = "default_name")]
    pub(super) name: Name,
    /// The servers: at most 1024, no address twice, and at least one unless there is `discovery`. Beside it, an endpoint
    /// written here is in the pool whether or not it is found, and has the settings written here if it is.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(length(max = 1024)))]
    endpoints: Vec<WrittenEndpoint>,
    /// Where else the servers are found.
    discovery: Option<WrittenDiscovery>,
    /// A label by which written endpoints drain, as if each had `draining`: `"state=drain"`, or `"drain"` for a label with
    /// whatever value. If left out, no label does.
    draining_label: Option<String>,
    /// How long a server that joins the running pool, or comes back, takes to its full share. It gets requests at once, but
    /// has in flight at most that part of what the others have on average which has passed of this time; one in any case.
    /// `0s` switches it off.
    #[serde(default = "default_warmup")]
    warmup: Period<0, 3_600_000>,
    /// Whether a server that fails its requests gets fewer. Failures are server errors other than 501, 503 and 505, refused or
    /// broken connections and timeouts; 503 and 429 mean busy and do not count. Retries that went elsewhere count half, but do
    /// not make a server failing by themselves. After about three failures in a row, or where most requests fail, the server
    /// gets one request after a second, then others at growing intervals of up to 30 s; one that is answered gives it its
    /// share back. At most half of the servers are held back so. If no server is left, all take part as before.
    #[serde(default = "yes")]
    passive_health: bool,
    /// The models that these servers serve, by the names that the servers have for them. A model is in one pool only. A pool
    /// without `models` takes every model that no other pool names, and there can be one such; if there is none, a request
    /// for any other model is answered with 404.
    pub(super) models: Option<Vec<ModelName>>,
    /// Adapters (LoRA) that these servers serve, each with its base model, such as `{"sql-lora": "llama-3-8b"}`. Needed for
    /// an adapter of a pool with `models`, and for `model_headers`.
    #[serde(default)]
    pub(super) adapters: BTreeMap<String, String>,
    /// How an endpoint of this pool is chosen, if otherwise than the `profile` of all says.
    #[serde(default, deserialize_with = "some_named_or_written")]
    #[cfg_attr(feature = "schema", schemars(with = "super::ready::NamedOrWritten"))]
    pub(super) profile: Option<WrittenProfile>,
}

/// One model server.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct WrittenEndpoint {
    /// Where the server listens: `10.0.0.1:8000` or `[2001:db8::1]:8000`. Names are refused: the proxy finds the picked
    /// address among the resolved members of its cluster, and one that it does not find is passed over silently.
    address: Address,
    /// Which metric names the server uses: `auto`, `vllm`, `sglang`, `trtllm-serve`, `triton-tensorrt-llm`, `tgi`,
    /// `llama.cpp`, `lmdeploy`, or the name of an entry of `scrape.engines`. `auto` tells the engine by the metrics that
    /// `/metrics` answers with; an engine that answers elsewhere (`trtllm-serve`) must be named.
    #[serde(default = "default_engine")]
    engine: String,
    /// Where the server answers with its metrics. If left out, where its engine usually does.
    metrics_path: Option<HttpPath>,
    /// Whether the server is to get no new request. What it has in flight goes on, and it is scraped as before. Mark it so,
    /// wait until its streams have ended, then stop it and take it out. The load balancing of the proxy does not know of
    /// this: with `fail-open` it may still choose the server while nothing is known of the pool.
    #[serde(default)]
    draining: bool,
    /// Any labels of the server, such as `{"role": "decode"}`; the values are strings.
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

/// Whether `labels` has this one: `key=value`, or `key` with any value.
fn has_label(labels: &BTreeMap<String, String>, label: &str) -> bool {
    let (key, value) = label.split_once('=').map_or((label, None), |(key, value)| (key, Some(value)));
    labels.get(key).is_some_and(|found| value.is_none_or(|value| found == value))
}

fn default_name() -> Name {
    Name("default".to_owned())
}

fn default_warmup() -> Period<0, 3_600_000> {
    Period::ms(30_000)
}

fn yes() -> bool {
    true
}

fn default_engine() -> String {
    AUTO.to_owned()
}

impl WrittenPool {
    /// `taken` has the addresses of the pools before this one, and where each was written.
    pub(super) fn resolve(
        self,
        place: &str,
        engines: &Engines,
        taken: &mut HashMap<SocketAddr, String>,
    ) -> Result<Pool, ConfigError> {
        match self.endpoints.len() {
            0 if self.discovery.is_none() => {
                return Err(ConfigError::at("endpoints", "at least one endpoint is needed, or `discovery`"));
            }
            0..=MOST_ENDPOINTS => {}
            n => return Err(ConfigError::at("endpoints", format!("{n} endpoints are more than {MOST_ENDPOINTS}"))),
        }
        let label = self.draining_label.as_deref();
        if label.is_some_and(|label| label.is_empty() || label.starts_with('=')) {
            return Err(ConfigError::at("draining_label", "a label is needed, such as state=drain"));
        }
        let mut endpoints = Vec::with_capacity(self.endpoints.len());
        for (i, written) in self.endpoints.into_iter().enumerate() {
            let here = format!("endpoints[{i}]");
            let Address(address) = written.address;
            if let Some(first) = taken.insert(address, format!("{place}.{here}")) {
                let message = format!("{address} is the address of {first} already");
                return Err(ConfigError::at("address", message).within(&here));
            }
            let engine =
                engines.get(&written.engine).map_err(|message| ConfigError::at("engine", message).within(&here))?;
            endpoints.push(Target {
                address,
                spec: Arc::clone(&engine.spec),
                metrics_path: written.metrics_path.map_or_else(|| engine.metrics_path.clone(), |HttpPath(path)| path),
                draining: written.draining || label.is_some_and(|label| has_label(&written.labels, label)),
                labels: written.labels,
            });
        }
        let discovery = self.discovery.map(|discovery| discovery.resolve(engines)).transpose();
        let discovery = discovery.map_err(|error| error.within("discovery"))?;
        let Name(name) = self.name;
        Ok(Pool { name, endpoints, discovery, warmup: self.warmup.get(), passive_health: self.passive_health })
    }
}
