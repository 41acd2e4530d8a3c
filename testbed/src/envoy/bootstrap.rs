//! The shipped configuration with the addresses of a run put in.

use std::net::SocketAddr;
use std::path::Path;
use std::{fmt, fs};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::binary;
use crate::root;

/// Where the shipped configuration has what a run changes, as JSON pointers.
pub mod at {
    /// The plugin in its role of scraper.
    pub const SCRAPER: &str = "/bootstrap_extensions/0/typed_config/config";
    /// The listener.
    pub const LISTENER: &str = "/static_resources/listeners/0";
    /// Its connection manager.
    pub const HTTP: &str = "/static_resources/listeners/0/filter_chains/0/filters/0/typed_config";
    /// The plugin in its role of picker.
    pub const PICKER: &str =
        "/static_resources/listeners/0/filter_chains/0/filters/0/typed_config/http_filters/0/typed_config/config";
    /// The cluster of model servers.
    pub const CLUSTER: &str = "/static_resources/clusters/0";
    /// The admin interface's port.
    pub const ADMIN: &str = "/admin/address/socket_address/port_value";
}

/// Envoy's configuration: `envoy.yaml` as shipped, but for what is said here.
#[derive(Clone, Debug)]
pub struct Bootstrap(Value);

impl Bootstrap {
    /// The shipped configuration without a change.
    pub fn shipped() -> Result<Self> {
        let text = fs::read_to_string(root().join("envoy.yaml")).context("envoy.yaml")?;
        Ok(Self(serde_saphyr::from_str(&text).context("envoy.yaml")?))
    }

    /// The shipped configuration for these model servers, on ports that the system chooses.
    pub fn new(endpoints: &[SocketAddr]) -> Result<Self> {
        let mut this = Self::shipped()?.module(&binary::module()?)?;
        *this.get(&format!("{}/address/socket_address/port_value", at::LISTENER))? = json!(0);
        *this.get(at::ADMIN)? = json!(0);
        let members = endpoints.iter().map(|endpoint| {
            let address = json!({ "address": endpoint.ip(), "port_value": endpoint.port() });
            json!({ "endpoint": { "address": { "socket_address": address } } })
        });
        *this.get(&format!("{}/load_assignment/endpoints/0/lb_endpoints", at::CLUSTER))? = members.collect();
        let pool = endpoints.iter().map(|endpoint| json!({ "address": endpoint.to_string(), "engine": "vllm" }));
        let pool: Value = pool.collect();
        this.setting("/pool/endpoints", pool)
    }

    /// With another module than the one beside the shipped configuration.
    pub fn module(mut self, path: &Path) -> Result<Self> {
        for plugin in [at::SCRAPER, at::PICKER] {
            *self.get(&format!("{plugin}/vm_config/code/local/filename"))? = json!(path);
        }
        Ok(self)
    }

    /// Sets a field of the picker's own configuration, which the scraper shares. The pointer is JSON's.
    pub fn setting(mut self, pointer: &str, value: Value) -> Result<Self> {
        for plugin in [at::SCRAPER, at::PICKER] {
            // There may be no scraper any more.
            if self.0.pointer(plugin).is_some() {
                self = self.set(&format!("{plugin}/configuration/value{pointer}"), value.clone())?;
            }
        }
        Ok(self)
    }

    /// These pools in place of the one.
    pub fn pools(mut self, pools: Value) -> Result<Self> {
        for plugin in [at::SCRAPER, at::PICKER] {
            let settings = self.get(&format!("{plugin}/configuration/value"))?;
            settings.as_object_mut().context("the picker's configuration")?.remove("pool");
        }
        self.setting("/pools", pools)
    }

    /// Requests without a pick are left to the cluster's own policy.
    pub fn fail_open(self) -> Result<Self> {
        self.setting("/failure_mode", json!("fail-open"))
    }

    /// Without the picker and its scraper: Envoy's own round robin.
    pub fn without_picker(mut self) -> Result<Self> {
        self.remove_scraper()?;
        let filters = self.get(&format!("{}/http_filters", at::HTTP))?;
        filters.as_array_mut().context("http_filters")?.remove(0);
        Ok(self)
    }

    /// Without the singleton, so that a worker has to do its work.
    pub fn without_scraper(mut self) -> Result<Self> {
        self.remove_scraper()?;
        Ok(self)
    }

    /// A part of it. The pointer is JSON's.
    pub fn at(&self, pointer: &str) -> Result<&Value> {
        self.0.pointer(pointer).with_context(|| format!("envoy.yaml has no {pointer}"))
    }

    /// Sets anything else: an element of an array that is there, or a field of an object. The pointer is JSON's.
    pub fn set(mut self, pointer: &str, value: Value) -> Result<Self> {
        let (parent, name) = pointer.rsplit_once('/').context("a pointer begins with a slash")?;
        match self.get(parent)? {
            Value::Object(fields) => _ = fields.insert(name.to_owned(), value),
            _ => *self.get(pointer)? = value,
        }
        Ok(self)
    }

    fn remove_scraper(&mut self) -> Result<()> {
        self.get("/bootstrap_extensions")?.as_array_mut().context("bootstrap_extensions")?.clear();
        Ok(())
    }

    fn get(&mut self, pointer: &str) -> Result<&mut Value> {
        self.0.pointer_mut(pointer).with_context(|| format!("envoy.yaml has no {pointer}"))
    }
}

impl fmt::Display for Bootstrap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#}", self.0)
    }
}
