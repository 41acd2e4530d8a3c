//! Routes, and what their handlers share.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::HeaderValue;
use axum::http::header::HeaderName;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::{MethodRouter, get, post};
use tokio::sync::watch;

use super::api::{Chat, Completions, Dialect, Embeddings, Generate, Messages, Responses};
use super::faults::Faults;
use super::live::LiveEngine;
use super::models::Models;
use super::{Phase, admin, call, error, metrics, models};
use crate::metrics::Flavor;

/// State of a server.
pub(super) struct App {
    pub(super) addr: SocketAddr,
    pub(super) flavor: Flavor,
    pub(super) engine: LiveEngine,
    pub(super) config: crate::engine::Config,
    pub(super) models: Models,
    pub(super) faults: Faults,
    pub(super) context_len: u32,
    pub(super) block_size: u32,
    pub(super) default_max_tokens: u32,
    /// Unix seconds.
    pub(super) started: f64,
    pub(super) phase: watch::Receiver<Phase>,
    pub(super) ids: AtomicU64,
}

impl App {
    /// A number no other answer of this server has; differs between servers.
    pub(super) fn next_id(&self) -> u64 {
        let count = self.ids.fetch_add(1, Ordering::Relaxed);
        (u64::from(self.addr.port()) << 48) | count
    }

    /// Returns when the server is told to stop.
    pub(super) async fn stopping(&self) {
        let _ = self.phase.clone().wait_for(|phase| *phase != Phase::Serving).await;
    }
}

/// All paths of a server.
pub(super) fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/v1/chat/completions", dialect(&Chat))
        .route("/v1/completions", dialect(&Completions))
        .route("/v1/responses", dialect(&Responses))
        .route("/v1/embeddings", dialect(&Embeddings))
        .route("/v1/messages", dialect(&Messages))
        .route("/generate", dialect(&Generate))
        .route("/v1/models", get(models::list))
        .route("/metrics", get(metrics::metrics))
        .route("/prometheus/metrics", get(metrics::prometheus_metrics))
        .route("/health", get(async || ()))
        .route("/ping", get(async || ()))
        .route("/version", get(admin::version))
        .route("/sim/faults", get(admin::faults).post(admin::set_faults))
        .route("/sim/reset", post(admin::reset))
        .route("/sim/stats", get(admin::stats))
        .fallback(error::not_found)
        .method_not_allowed_fallback(error::method_not_allowed)
        .layer(DefaultBodyLimit::disable())
        .layer(from_fn_with_state(Arc::clone(&app), sign))
        .with_state(app)
}

fn dialect(dialect: &'static dyn Dialect) -> MethodRouter<Arc<App>> {
    post(move |State(app): State<Arc<App>>, request: Request| call::answer(app, dialect, request))
}

/// Says on every response who gave it.
async fn sign(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    if let Ok(addr) = HeaderValue::from_str(&app.addr.to_string()) {
        response.headers_mut().insert(HeaderName::from_static("x-served-by"), addr);
    }
    response
}
