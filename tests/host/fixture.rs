//! Pools, prompts and proxies that most tests begin with.

use std::time::Duration;

use serde_json::{Value, json};

use crate::proxy::{Proxy, Server, Worker};

/// Paths whose bodies are looked at.
pub const INFERENCE_PATHS: &[&str] =
    &["/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/embeddings", "/v1/messages", "/generate"];

pub const CHAT: &str = "/v1/chat/completions";

pub fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// The address of the `n`th endpoint.
pub fn address(n: usize) -> String {
    format!("10.0.0.{n}:8000")
}

/// A configuration with endpoints 1 to `n` and all defaults.
pub fn pool(n: usize) -> Value {
    let endpoints: Vec<_> = (1..=n).map(|n| json!({ "address": address(n) })).collect();
    json!({ "pool": { "endpoints": endpoints } })
}

/// The same with one field at its top set.
pub fn with(mut configuration: Value, field: &str, value: Value) -> Value {
    configuration[field] = value;
    configuration
}

/// A profile of one scorer that names one endpoint.
pub fn only(scorer: &str) -> Value {
    json!({ "scorers": [{ "type": scorer }], "picker": { "type": "max-score-picker" } })
}

/// A proxy whose servers are idle and known to a worker.
pub fn ready(configuration: Value) -> (Proxy, Worker) {
    let proxy = Proxy::envoy(&configuration);
    for endpoint in configuration["pool"]["endpoints"].as_array().unwrap() {
        proxy.server(endpoint["address"].as_str().unwrap(), Server::vllm(0, 0, 0.1));
    }
    proxy.scraper();
    let worker = proxy.worker();
    proxy.run_for(ms(300));
    (proxy, worker)
}

/// A chat whose messages have these texts.
pub fn chat(texts: &[&str]) -> String {
    let messages: Vec<_> = texts.iter().map(|text| json!({ "role": "user", "content": text })).collect();
    json!({ "model": "m", "messages": messages }).to_string()
}
