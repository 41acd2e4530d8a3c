//! `/v1/models`, and which model a body means.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};
use xxhash_rust::xxh3::xxh3_64;

use super::app::App;
use super::call::Model;
use super::error::ApiError;

/// The base model's names and its adapters.
pub(super) struct Models {
    /// The first is the one answers carry when a body names none.
    pub(super) base: Vec<String>,
    pub(super) adapters: Vec<String>,
    /// Whether other names are an error or mean the base model.
    pub(super) enforce: bool,
}

impl Models {
    pub(super) fn first(&self) -> &str {
        self.base.first().map_or("", String::as_str)
    }

    /// The model of that name; the base model if there is no name. Error: an unknown name, if names are enforced.
    pub(super) fn resolve<'a>(&'a self, name: Option<&str>) -> Result<Model<'a>, ApiError> {
        let salt = xxh3_64(self.first().as_bytes());
        let base = |name: &'a str| Model { name, salt, adapter: None };
        let Some(name) = name else { return Ok(base(self.first())) };
        if let Some(known) = self.base.iter().find(|known| *known == name) {
            return Ok(base(known));
        }
        if let Some((adapter, known)) = (0..).zip(&self.adapters).find(|(_, known)| *known == name) {
            let salt = salt ^ xxh3_64(known.as_bytes());
            return Ok(Model { name: known, salt, adapter: Some(adapter) });
        }
        if self.enforce { Err(ApiError::unknown_model(name, &self.base.join(", "))) } else { Ok(base(self.first())) }
    }
}

/// `GET /v1/models`.
pub(super) async fn list(State(app): State<Arc<App>>) -> Json<Value> {
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
