//! A server and a client for it.

use std::time::Duration;

use reqwest::{Client, Response};
use serde_json::{Value, json};
use sim::engine::Config;
use sim::server::{Server, ServerConfig, ServerStats};

/// Fast enough that nothing waits: a step is under a millisecond.
pub(crate) const FAST: f64 = 100.0;

pub(crate) async fn start(config: ServerConfig) -> Server {
    Server::start(config).await.expect("a free port")
}

pub(crate) async fn fast() -> Server {
    start(ServerConfig { speedup: FAST, ..ServerConfig::default() }).await
}

/// One request at a time and a step of 50 ms.
pub(crate) fn slow_config() -> ServerConfig {
    let mut engine = Config { max_num_seqs: 1, ..Config::default() };
    engine.step_time.fixed = 0.05;
    ServerConfig { engine, ..ServerConfig::default() }
}

pub(crate) fn url(server: &Server, path: &str) -> String {
    format!("http://{}{path}", server.addr())
}

pub(crate) async fn get(server: &Server, path: &str) -> Response {
    reqwest::get(url(server, path)).await.expect("an answer")
}

pub(crate) async fn post(server: &Server, path: &str, body: &Value) -> Response {
    let request = Client::new().post(url(server, path)).header("x-request-id", "req-1").body(body.to_string());
    request.send().await.expect("an answer")
}

pub(crate) async fn json_of(response: Response) -> Value {
    response.json().await.expect("JSON")
}

/// The data of each event; `[DONE]` as a string.
pub(crate) async fn events(response: Response) -> Vec<Value> {
    assert_eq!(response.headers()["content-type"], "text/event-stream; charset=utf-8");
    let text = response.text().await.expect("a whole stream");
    let data = text.split("\n\n").flat_map(str::lines).filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).unwrap_or_else(|_| json!(data))).collect()
}

/// Statistics once they satisfy the condition; panics after ten seconds.
pub(crate) async fn stats_when(server: &Server, condition: impl Fn(&ServerStats) -> bool) -> ServerStats {
    for _ in 0..2000 {
        let stats = server.stats();
        if condition(&stats) {
            return stats;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("still {:?}", server.stats());
}

pub(crate) fn chat(content: &str, max_tokens: u32) -> Value {
    json!({"model": "sim", "messages": [{"role": "user", "content": content}], "max_tokens": max_tokens})
}
