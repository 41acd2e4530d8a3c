//! The shipped module and the shipped configuration in a real Envoy, before simulated model servers.
#![cfg(all(test, not(target_family = "wasm")))]

mod affinity;
mod bodies;
mod cache;
mod churn;
mod configuration;
mod conformance;
mod crash;
mod destination;
mod discovery;
mod failure;
mod paths;
mod profiles;
mod rewrite;
mod workers;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, ensure};
use reqwest::{Method, Response};
use serde_json::{Value, json};
use sim::server::ServerConfig;
use testbed::{Answer, Bootstrap, Client, Envoy, Fleet};

/// Four servers and an Envoy before them.
struct Stack {
    fleet: Fleet,
    envoy: Envoy,
    client: Client,
}

impl Stack {
    /// As shipped, with servers that answer in no time.
    async fn start() -> Result<Self> {
        Self::with(ServerConfig { speedup: 20.0, ..ServerConfig::default() }, Ok).await
    }

    /// With other servers or another configuration. Returns when every server has been scraped.
    async fn with(config: ServerConfig, change: impl FnOnce(Bootstrap) -> Result<Bootstrap>) -> Result<Self> {
        Self::with_workers(2, Fleet::start(4, config).await?, change).await
    }

    /// Before these servers, with another number of Envoy's worker threads.
    async fn with_workers(
        workers: u32,
        fleet: Fleet,
        change: impl FnOnce(Bootstrap) -> Result<Bootstrap>,
    ) -> Result<Self> {
        let envoy = Envoy::start_with(&change(Bootstrap::new(fleet.addresses())?)?, workers).await?;
        // In the first round each server is asked once, in the second all have answered.
        envoy.picker_stat_reaches("scrapes_read_total", 2 * fleet.addresses().len() as u64).await?;
        let client = envoy.client();
        Ok(Self { fleet, envoy, client })
    }
}

/// A chat of one question.
fn chat(question: &str) -> Value {
    json!({ "model": "sim", "messages": [{ "role": "user", "content": question }], "max_tokens": 8 })
}

/// A stream that the server is held busy with until it is dropped.
struct Held {
    _stream: Response,
    server: SocketAddr,
}

impl Held {
    /// Returns when the first token is there.
    async fn open(client: &Client, model: &str) -> Result<Self> {
        let body = json!({ "model": model, "prompt": "Go on", "max_tokens": 100_000, "stream": true });
        let stream = client.request(Method::POST, "/v1/completions").json(&body).send().await?.error_for_status()?;
        let server = stream.headers().get("x-served-by").context("not from a server")?.to_str()?.parse()?;
        Ok(Self { _stream: stream, server })
    }
}

/// Posts and checks that the answer is to this very request and that the server got every byte of it.
async fn ask(client: &Client, path: &str, body: &Value) -> Result<Answer> {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let id = format!("e2e-{}", COUNT.fetch_add(1, Ordering::Relaxed));
    let bytes = body.to_string();
    let hash = fnv1a(bytes.as_bytes());
    let request =
        client.request(Method::POST, path).header("x-request-id", &id).header("content-type", "application/json");
    let answer = Answer::to(request.body(bytes)).await?;
    ensure!(answer.status == 200, "{id}: {answer:?}");
    ensure!(answer.header("x-request-id") == Some(&id), "the answer to another request than {id}: {answer:?}");
    ensure!(answer.header("x-body-fnv") == Some(&hash), "{id} arrived otherwise than it was sent: {answer:?}");
    Ok(answer)
}

/// The hash that the simulated servers take of a body.
fn fnv1a(bytes: &[u8]) -> String {
    let hash = bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    format!("{hash:016x}")
}

/// Text that no other part of a test has.
fn words(seed: usize, count: usize) -> String {
    (0..count).map(|at| format!("{seed}x{at} ")).collect()
}
