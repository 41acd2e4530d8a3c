//! The pool is the cluster, which a control plane changes while Envoy runs.

use std::collections::HashSet;
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use reqwest::Method;
use serde_json::{Value, json};
use sim::server::ServerConfig;
use tempfile::TempDir;
use testbed::envoy::at;
use testbed::{Bootstrap, Client, Envoy, Fleet};
use tokio::time::{Instant, sleep};

use crate::{ask, words};

/// The members of the cluster as a file, which Envoy reads anew whenever another is moved into its place.
struct Members {
    folder: TempDir,
}

impl Members {
    fn path(&self) -> PathBuf {
        self.folder.path().join("eds.json")
    }

    fn are(&self, members: &[(SocketAddr, &str)]) -> Result<()> {
        let member = |(address, health): &(SocketAddr, &str)| {
            let socket = json!({ "address": address.ip(), "port_value": address.port() });
            json!({ "endpoint": { "address": { "socket_address": socket } }, "health_status": health })
        };
        let members: Vec<_> = members.iter().map(member).collect();
        let assignment = json!({
            "@type": "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment",
            "cluster_name": "model_servers",
            "endpoints": [{ "lb_endpoints": members }],
        });
        let new = self.folder.path().join("new");
        fs::write(&new, json!({ "resources": [assignment] }).to_string())?;
        Ok(fs::rename(new, self.path())?)
    }
}

/// `envoy.yaml` with a cluster from the file and a pool that is that cluster.
fn found(fleet: &Fleet, members: &Path) -> Result<Bootstrap> {
    // Free a moment ago; the system gives it to nobody else so soon.
    let admin = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let bootstrap = Bootstrap::new(fleet.addresses())?;
    let mut clusters = bootstrap.at("/static_resources/clusters")?.clone();
    let list = clusters.as_array_mut().context("clusters")?;
    let servers = list.first_mut().and_then(Value::as_object_mut).context("model_servers")?;
    servers.remove("load_assignment");
    servers.insert("type".into(), json!("EDS"));
    let source = json!({ "resource_api_version": "V3", "path_config_source": { "path": members } });
    servers.insert("eds_cluster_config".into(), json!({ "eds_config": source }));
    let socket = json!({ "address": admin.ip(), "port_value": admin.port() });
    let endpoint = json!({ "endpoint": { "address": { "socket_address": socket } } });
    list.push(json!({
        "name": "envoy_admin",
        "type": "STATIC",
        "load_assignment": { "cluster_name": "envoy_admin", "endpoints": [{ "lb_endpoints": [endpoint] }] },
    }));
    let discovery = json!({ "cluster": "model_servers", "admin_cluster": "envoy_admin", "engine": "vllm" });
    bootstrap
        .set("/static_resources/clusters", clusters)?
        .set(at::ADMIN, json!(admin.port()))?
        // A file cannot be the source of a cluster unless Envoy knows by what name it goes.
        .set("/node", json!({ "id": "e2e", "cluster": "e2e" }))?
        .setting("/pool", json!({ "warmup": "0s", "discovery": discovery }))
}

/// Who answers twenty requests.
async fn servers(client: &Client, seed: usize) -> Result<HashSet<SocketAddr>> {
    let mut servers = HashSet::new();
    for question in 0..20 {
        let body = json!({ "model": "sim", "prompt": words(seed * 100 + question, 50), "max_tokens": 2 });
        servers.insert(ask(client, "/v1/completions", &body).await?.served_by()?);
    }
    Ok(servers)
}

/// Waits until these and no others answer.
async fn become_those(client: &Client, expected: &[SocketAddr]) -> Result<()> {
    let expected: HashSet<_> = expected.iter().copied().collect();
    let deadline = Instant::now() + Duration::from_secs(30);
    for seed in 0.. {
        let found = servers(client, seed).await?;
        if found == expected {
            return Ok(());
        }
        ensure!(Instant::now() < deadline, "{found:?} answer, not {expected:?}");
        sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn traffic_follows_the_members_of_the_cluster() -> Result<()> {
    let fleet = Fleet::start(3, ServerConfig { speedup: 20.0, ..ServerConfig::default() }).await?;
    let &[a, b, c] = fleet.addresses() else { bail!("three servers") };
    let members = Members { folder: tempfile::tempdir()? };
    members.are(&[(a, "HEALTHY"), (b, "HEALTHY")])?;
    let envoy = Envoy::start(&found(&fleet, &members.path())?).await?;
    envoy.picker_stat_reaches("endpoints", 2).await?;
    envoy.picker_stat_reaches("scrapes_read_total", 4).await?;
    let client = envoy.client();
    become_those(&client, &[a, b]).await?;

    // One joins.
    members.are(&[(a, "HEALTHY"), (b, "HEALTHY"), (c, "HEALTHY")])?;
    become_those(&client, &[a, b, c]).await?;

    // One drains: what it has goes on.
    let stream = client.request(Method::POST, "/v1/completions");
    let body = json!({ "model": "sim", "prompt": "Tell me", "max_tokens": 4000, "stream": true });
    let mut stream = stream.json(&body).send().await?.error_for_status()?;
    let busy: SocketAddr = stream.headers().get("x-served-by").context("not from a server")?.to_str()?.parse()?;
    let rest: Vec<_> = [a, b, c].into_iter().filter(|server| *server != busy).collect();
    let healthy = |server: &SocketAddr| (*server, "HEALTHY");
    let mut draining: Vec<_> = rest.iter().map(healthy).collect();
    draining.push((busy, "DRAINING"));
    members.are(&draining)?;
    become_those(&client, &rest).await?;

    // It leaves.
    members.are(&rest.iter().map(healthy).collect::<Vec<_>>())?;
    let two = async |envoy: &Envoy| (envoy.picker_stat("endpoints").await.ok()? == 2).then_some(());
    envoy.until("two endpoints", two).await?;
    become_those(&client, &rest).await?;
    let mut text = Vec::new();
    while let Some(piece) = stream.chunk().await? {
        text.extend(piece);
    }
    ensure!(text.ends_with(b"data: [DONE]\n\n"), "the stream was cut");
    assert_eq!(envoy.picker_stat("served_elsewhere_total").await?, 0);
    Ok(())
}
