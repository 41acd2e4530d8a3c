//! What is not a call of the API: `/v1/models`, and `/sim/*` with faults, reset and statistics.

use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::app::App;
use super::faults::FaultSet;

/// A server's counters since its start or last reset. Unlike its metrics these are exact at any time.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct ServerStats {
    /// Requests taken into the engine; a call with several prompts counts several.
    pub requests: u64,
    /// Requests finished.
    pub finished: u64,
    /// Prompt tokens of finished requests.
    pub prompt_tokens: u64,
    /// Of these, taken from the prefix cache.
    pub cached_tokens: u64,
    /// Requests thrown out for lack of blocks.
    pub preemptions: u64,
    /// Running, as the metrics show it.
    pub running: usize,
    /// Waiting, as the metrics show it.
    pub waiting: usize,
    /// Running and waiting right now.
    pub in_flight: usize,
    /// The most that were running and waiting at one time.
    pub most_in_flight: usize,
    /// Share of KV blocks in use, as the metrics show it.
    pub kv_usage: f64,
}

impl ServerStats {
    pub(super) fn of(app: &App) -> Self {
        let observed = app.engine.observe();
        Self {
            requests: observed.requests,
            finished: observed.stats.counters.finished,
            prompt_tokens: observed.prompt_tokens,
            cached_tokens: observed.cached_tokens,
            preemptions: observed.stats.counters.preemptions,
            running: observed.stats.running,
            waiting: observed.stats.waiting,
            in_flight: observed.in_flight,
            most_in_flight: observed.most_in_flight,
            kv_usage: observed.stats.kv_usage,
        }
    }
}

/// `GET /sim/stats`.
pub(super) async fn stats(State(app): State<Arc<App>>) -> Json<ServerStats> {
    Json(ServerStats::of(&app))
}

/// `POST /sim/reset`: cold cache, counters at zero.
pub(super) async fn reset(State(app): State<Arc<App>>) {
    app.engine.reset();
}

/// `GET /sim/faults`.
pub(super) async fn faults(State(app): State<Arc<App>>) -> Json<FaultSet> {
    Json(app.faults.get())
}

/// `POST /sim/faults`: replaces all faults; `{}` ends them.
pub(super) async fn set_faults(State(app): State<Arc<App>>, body: Bytes) -> Response {
    match serde_json::from_slice::<FaultSet>(&body) {
        Ok(faults) => {
            app.faults.set(faults.clone());
            Json(faults).into_response()
        }
        Err(error) => (StatusCode::BAD_REQUEST, Json(json!({"error": error.to_string()}))).into_response(),
    }
}

/// `GET /version`.
pub(super) async fn version() -> Json<Value> {
    Json(json!({"version": concat!("sim-", env!("CARGO_PKG_VERSION"))}))
}

/// `GET /v1/models`.
pub(super) async fn list_models(State(app): State<Arc<App>>) -> Json<Value> {
    let created = app.started as u64;
    let model = |id: &str, root: &str, parent: Option<&str>, context: Option<u32>| {
        json!({
            "id": id,
            "object": "model",
            "created": created,
            "owned_by": "vllm",
            "root": root,
            "parent": parent,
            "max_model_len": context,
        })
    };
    let base = app.models.base.iter().map(|id| model(id, app.models.first(), None, Some(app.context_len)));
    let adapters = app.models.adapters.iter().map(|id| model(id, id, Some(app.models.first()), None));
    Json(json!({"object": "list", "data": base.chain(adapters).collect::<Value>()}))
}
