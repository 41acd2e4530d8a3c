//! Error answers, shaped as vLLM 0.32 gives them.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::engine::Rejected;

/// An error in the API's own shape.
#[derive(Debug)]
pub(crate) struct ApiError {
    status: StatusCode,
    message: String,
    kind: &'static str,
    param: Option<&'static str>,
}

impl ApiError {
    pub(crate) fn unknown_model(model: &str, known: &str) -> Self {
        Self {
            status: StatusCode::NOT_FOUND,
            message: format!("The model `{model}` does not exist. Valid aliases: {known}."),
            kind: "NotFoundError",
            param: Some("model"),
        }
    }

    pub(crate) fn bad_json(error: &serde_json::Error) -> Self {
        Self {
            status: StatusCode::BAD_REQUEST,
            message: format!("1 validation error:\n  {{'type': 'json_invalid', 'msg': '{error}'}}"),
            kind: "Bad Request",
            param: Some("body"),
        }
    }

    pub(crate) fn missing(param: &'static str) -> Self {
        Self {
            status: StatusCode::BAD_REQUEST,
            message: format!("1 validation error:\n  {{'type': 'missing', 'loc': '{param}', 'msg': 'Field required'}}"),
            kind: "Bad Request",
            param: Some(param),
        }
    }

    pub(crate) fn max_tokens(max_tokens: u64, context: u32) -> Self {
        Self {
            status: StatusCode::BAD_REQUEST,
            message: format!(
                "max_tokens={max_tokens} cannot be greater than max_model_len={context}. Please request fewer output \
                 tokens. (parameter=max_tokens, value={max_tokens})"
            ),
            kind: "BadRequestError",
            param: Some("max_tokens"),
        }
    }

    pub(crate) fn rejected(rejected: Rejected, prompt: usize, context: u32) -> Self {
        let message = match rejected {
            Rejected::Empty => "The prompt is empty.".to_owned(),
            Rejected::LoraDisabled => "LoRA is not enabled.".to_owned(),
            Rejected::TooLong => format!(
                "This model's maximum context length is {context} tokens. However, your prompt has {prompt} tokens. \
                 Please reduce the length of the input prompt."
            ),
        };
        Self { status: StatusCode::BAD_REQUEST, message, kind: "BadRequestError", param: Some("input_text") }
    }

    pub(crate) fn fault(status: StatusCode) -> Self {
        let message = status.canonical_reason().unwrap_or("Fault").to_owned();
        Self { status, message, kind: "InternalServerError", param: None }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let Self { status, message, kind, param } = self;
        let body = json!({"error": {"message": message, "type": kind, "param": param, "code": status.as_u16()}});
        (status, Json(body)).into_response()
    }
}

/// A path nobody serves.
pub(crate) async fn not_found() -> Response {
    (StatusCode::NOT_FOUND, Json(json!({"detail": "Not Found"}))).into_response()
}

/// A path that is served, but not with this method.
pub(crate) async fn method_not_allowed() -> Response {
    (StatusCode::METHOD_NOT_ALLOWED, Json(json!({"detail": "Method Not Allowed"}))).into_response()
}
