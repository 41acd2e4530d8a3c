//! Where the members of a pool are found.

use super::ConfigError;
use super::engine::{AUTO, Engines};
use super::path::HttpPath;
use super::period::Period;
use crate::fleet::Discovery;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Envoy's own list of a cluster's members, so that they need not be written a second time: they may come from DNS
/// (`STRICT_DNS`) or from a control plane (`EDS`), and change while Envoy runs. The scraper asks Envoy's admin interface for
/// `/clusters?format=json`; the pickers have the list from the scraper. A member that Envoy has as `DRAINING` gets no new
/// request; one that Envoy holds for unhealthy (by EDS, by a health check, by outlier detection) counts as unhealthy here. An
/// answer that cannot be used leaves the list as it was, as does a single one without any member. Of more than 1024
/// endpoints, the written ones included, the first in the order of their addresses take part.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenDiscovery {
    /// The name of the cluster in Envoy's configuration whose members are the pool, such as `model_servers`.
    cluster: String,
    /// The name of the cluster in Envoy's configuration that leads to its admin interface. Never route to it: whoever
    /// reaches the admin interface can stop the proxy.
    admin_cluster: String,
    /// How often Envoy is asked.
    #[serde(default = "second")]
    interval: Period<1000, 3_600_000>,
    /// Which metric names the members use, as in `endpoints[].engine`.
    engine: Option<String>,
    /// Where the members answer with their metrics. If left out, where their engine usually does.
    metrics_path: Option<HttpPath>,
    /// Labels of every member.
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

fn second() -> Period<1000, 3_600_000> {
    Period::ms(1000)
}

impl WrittenDiscovery {
    pub(super) fn resolve(self, engines: &Engines) -> Result<Discovery, ConfigError> {
        for (field, name) in [("cluster", &self.cluster), ("admin_cluster", &self.admin_cluster)] {
            if name.is_empty() {
                return Err(ConfigError::at(field, "the name of a cluster is needed"));
            }
        }
        let engine = self.engine.as_deref().unwrap_or(AUTO);
        let engine = engines.get(engine).map_err(|message| ConfigError::at("engine", message))?;
        Ok(Discovery {
            cluster: self.cluster,
            admin_cluster: self.admin_cluster,
            interval: self.interval.get(),
            metrics_path: self.metrics_path.map_or_else(|| engine.metrics_path.clone(), |HttpPath(path)| path),
            spec: Arc::clone(&engine.spec),
            labels: self.labels,
        })
    }
}
