//! The metrics page, sound or faulty.

use std::fmt::Write;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, LOCATION};
use axum::response::{Html, IntoResponse, Response};
use futures_util::{StreamExt, stream};
use serde_json::json;

use super::app::App;
use super::error::not_found;
use super::faults::MetricsFault;
use crate::metrics::{Flavor, Page};

/// Bytes of an oversized page.
const OVERSIZED: usize = 5 << 20;

/// `GET /metrics`: JSON where the engine has its Prometheus page elsewhere.
pub(super) async fn metrics(State(app): State<Arc<App>>) -> Response {
    if app.flavor.metrics_path() == "/metrics" {
        return page(&app).await;
    }
    let observed = app.engine.observe();
    let stats = observed.stats;
    Json(json!([{
        "iter": stats.counters.steps,
        "numActiveRequests": stats.running,
        "numQueuedRequests": stats.waiting,
        "kvCacheStats": {"usedNumBlocks": stats.kv_blocks_used, "maxNumBlocks": app.config.num_gpu_blocks},
    }]))
    .into_response()
}

/// `GET /prometheus/metrics`.
pub(super) async fn prometheus_metrics(State(app): State<Arc<App>>) -> Response {
    if app.flavor.metrics_path() == "/prometheus/metrics" { page(&app).await } else { not_found().await }
}

async fn page(app: &App) -> Response {
    match app.faults.get().metrics {
        MetricsFault::Ok => {}
        MetricsFault::Slow(ms) => tokio::time::sleep(Duration::from_millis(ms)).await,
        MetricsFault::Status(code) => {
            return StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR).into_response();
        }
        MetricsFault::CutOff => return cut_off(app.flavor, render(app)),
        MetricsFault::Redirect => return (StatusCode::FOUND, [(LOCATION, "/health")]).into_response(),
        MetricsFault::Json => return Json(json!({"status": "ok"})).into_response(),
        MetricsFault::Html => return Html("<!DOCTYPE html><html><body>Sign in</body></html>").into_response(),
        MetricsFault::Hang => {
            app.stopping().await;
            return StatusCode::SERVICE_UNAVAILABLE.into_response();
        }
        MetricsFault::Empty => return text(app.flavor, String::new()),
        MetricsFault::Oversized => {
            let mut page = render(app);
            for at in 0.. {
                if page.len() >= OVERSIZED {
                    break;
                }
                let _ = writeln!(page, "process_of_no_interest{{series=\"{at}\"}} {at}.0");
            }
            return text(app.flavor, page);
        }
    }
    text(app.flavor, render(app))
}

fn render(app: &App) -> String {
    let observed = app.engine.observe();
    app.flavor.render(&Page {
        model: app.models.first(),
        config: &app.config,
        stats: &observed.stats,
        histograms: &observed.histograms,
        loras: &observed.loras,
        started: app.started,
    })
}

fn text(flavor: Flavor, page: String) -> Response {
    ([(CONTENT_TYPE, flavor.content_type())], page).into_response()
}

/// Half a page under the length of a whole one.
fn cut_off(flavor: Flavor, page: String) -> Response {
    let length = page.len();
    let half = Bytes::from(page).slice(..length / 2);
    // An error that is there at once would keep the half from being written.
    let end = stream::once(async {
        tokio::time::sleep(Duration::from_millis(10)).await;
        Err(io::Error::other("cut off"))
    });
    let body = Body::from_stream(stream::iter([Ok(half)]).chain(end));
    ([(CONTENT_TYPE, flavor.content_type().to_owned()), (CONTENT_LENGTH, length.to_string())], body).into_response()
}
