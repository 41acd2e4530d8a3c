//! The Envoy under test: a listener for each way through it.

use std::net::SocketAddr;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use testbed::envoy::at;
use testbed::{Bootstrap, Envoy};

use crate::guest;

/// A way through the proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// To the cluster and nothing else.
    Direct,
    /// Through a filter that does nothing.
    Empty,
    /// Through the picker.
    Picker,
    /// Through an external processor.
    Service,
}

impl Way {
    pub(super) const ALL: [Self; 4] = [Self::Direct, Self::Empty, Self::Picker, Self::Service];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Empty => "empty filter",
            Self::Picker => "picker",
            Self::Service => "ext_proc",
        }
    }
}

/// A running Envoy and its listeners.
pub(super) struct Proxy {
    envoy: Envoy,
    listeners: Value,
}

impl Proxy {
    /// Starts it and returns when all endpoints have been scraped.
    pub(super) async fn start(endpoints: &[SocketAddr], service: &[SocketAddr], profile: Option<&str>) -> Result<Self> {
        let service = service.first().context("no service")?;
        let envoy = Envoy::start_with(&configuration(endpoints, *service, profile)?, 1).await?;
        envoy.picker_stat_reaches("scrapes_read_total", 2 * endpoints.len() as u64).await?;
        let listeners = serde_json::from_str(&envoy.admin("listeners?format=json").await?)?;
        Ok(Self { envoy, listeners })
    }

    /// Where this way begins.
    pub(super) fn address(&self, way: Way) -> Result<SocketAddr> {
        let all = self.listeners.pointer("/listener_statuses").and_then(Value::as_array).context("no listeners")?;
        let is_it = |listener: &&Value| listener.get("name").and_then(Value::as_str) == Some(way.name());
        let address = all.iter().find(is_it).and_then(|listener| listener.pointer("/local_address/socket_address"));
        let address = address.with_context(|| format!("no listener \"{}\"", way.name()))?;
        let ip = address.get("address").and_then(Value::as_str).unwrap_or_default();
        let port = address.get("port_value").unwrap_or(&Value::Null);
        Ok(format!("{ip}:{port}").parse()?)
    }

    /// Envoy's process id.
    pub(super) fn pid(&self) -> u32 {
        self.envoy.pid()
    }
}

fn configuration(endpoints: &[SocketAddr], service: SocketAddr, profile: Option<&str>) -> Result<Bootstrap> {
    let mut shipped = Bootstrap::new(endpoints)?;
    if let Some(profile) = profile {
        shipped = shipped.setting("/profile", json!(profile))?;
    }
    let listeners = Way::ALL.into_iter().map(|way| listener(&shipped, way)).collect::<Result<_>>()?;
    let mut clusters = shipped.at("/static_resources/clusters")?.clone();
    clusters.as_array_mut().context("clusters")?.push(picker_service(service));
    shipped
        .set("/static_resources/listeners", listeners)?
        .set("/static_resources/clusters", clusters)?
        // A connection that is closed between two batches would have to be opened within one.
        .set(&format!("{}/{KEPT}/idle_timeout", at::CLUSTER), json!("600s"))
}

const KEPT: &str = "typed_extension_protocol_options/envoy.extensions.upstreams.http.v3.HttpProtocolOptions/\
                    common_http_protocol_options";

/// The shipped listener with another filter in the place of the picker.
fn listener(shipped: &Bootstrap, way: Way) -> Result<Value> {
    let mut listener = shipped.at(at::LISTENER)?.clone();
    *listener.get_mut("name").context("name")? = json!(way.name());
    let filters = at::HTTP.strip_prefix(at::LISTENER).map(|http| format!("{http}/http_filters"));
    let filters = filters.and_then(|path| listener.pointer_mut(&path)?.as_array_mut()).context("http_filters")?;
    let picker = filters.first_mut().context("no filter")?;
    match way {
        Way::Direct => _ = filters.remove(0),
        Way::Empty => *picker = empty_filter()?,
        Way::Picker => {}
        Way::Service => *picker = external_processor(),
    }
    Ok(listener)
}

fn empty_filter() -> Result<Value> {
    Ok(json!({
        "name": "empty",
        "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm",
            "config": guest::plugin(guest::EMPTY_FILTER)?,
        },
    }))
}

/// In the modes that the endpoint picker of the Inference Extension asks for.
fn external_processor() -> Value {
    json!({
        "name": "ext_proc",
        "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.filters.http.ext_proc.v3.ExternalProcessor",
            "grpc_service": { "envoy_grpc": { "cluster_name": "picker_service" }, "timeout": "10s" },
            "message_timeout": "5s",
            "processing_mode": {
                "request_header_mode": "SEND",
                "request_body_mode": "FULL_DUPLEX_STREAMED",
                "request_trailer_mode": "SEND",
                "response_header_mode": "SEND",
                "response_body_mode": "FULL_DUPLEX_STREAMED",
                "response_trailer_mode": "SEND",
            },
        },
    })
}

fn picker_service(address: SocketAddr) -> Value {
    let address = json!({ "socket_address": { "address": address.ip(), "port_value": address.port() } });
    json!({
        "name": "picker_service",
        "type": "STATIC",
        "connect_timeout": "1s",
        "load_assignment": {
            "cluster_name": "picker_service",
            "endpoints": [{ "lb_endpoints": [{ "endpoint": { "address": address } }] }],
        },
        "typed_extension_protocol_options": {
            "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
                "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
                "explicit_http_config": { "http2_protocol_options": {} },
            },
        },
    })
}
