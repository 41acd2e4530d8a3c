//! All paths of a server.

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::HeaderValue;
use axum::http::header::HeaderName;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::{MethodRouter, get, post};

use super::api::{Chat, Completions, Dialect, Embeddings, Generate, Messages, Responses};
use super::app::App;
use super::{admin, call, error, metrics};

/// All paths of a server.
pub(super) fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/v1/chat/completions", dialect(&Chat))
        .route("/v1/completions", dialect(&Completions))
        .route("/v1/responses", dialect(&Responses))
        .route("/v1/embeddings", dialect(&Embeddings))
        .route("/v1/messages", dialect(&Messages))
        .route("/generate", dialect(&Generate))
        .route("/v1/models", get(admin::list_models))
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
