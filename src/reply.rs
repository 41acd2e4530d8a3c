//! Answers the filter gives itself, in the dialect the client speaks.

use serde_json::json;

use crate::picker::NoPick;
use crate::prompt::Dialect;
use crate::routes::UnknownModel;

/// An answer without an upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// HTTP status.
    pub status: u16,
    /// What the access log shows as the response code's details.
    pub details: &'static str,
    /// Headers.
    pub headers: Vec<(&'static str, &'static str)>,
    /// JSON.
    pub body: Vec<u8>,
}

impl Reply {
    /// 503 for a request that found no endpoint: the client should try again shortly.
    pub fn unavailable(dialect: Option<Dialect>, why: NoPick) -> Self {
        let code = match why {
            NoPick::NoSnapshot => "no_snapshot",
            NoPick::EmptySubset => "empty_subset",
            NoPick::AllFilteredOut => "all_filtered_out",
        };
        let message = why.to_string();
        let body = match dialect {
            Some(Dialect::Messages) => {
                json!({ "type": "error", "error": { "type": "overloaded_error", "message": message } })
            }
            _ => json!({ "error": { "message": message, "type": "service_unavailable", "code": code } }),
        };
        Self {
            status: 503,
            details: "endpoint_picker_no_endpoint",
            headers: vec![
                ("content-type", "application/json"),
                ("retry-after", "1"),
                ("x-llm-d-request-dropped-reason", "rejected-no-endpoints"),
            ],
            body: body.to_string().into_bytes(),
        }
    }

    /// 404 for a request whose model no pool serves, as the providers answer it.
    pub fn unknown_model(dialect: Option<Dialect>, unknown: &UnknownModel) -> Self {
        let message = format!("The model `{}` does not exist", String::from_utf8_lossy(&unknown.0));
        let body = match dialect {
            Some(Dialect::Messages) => {
                json!({ "type": "error", "error": { "type": "not_found_error", "message": message } })
            }
            _ => {
                let code = "model_not_found";
                json!({ "error": { "message": message, "type": "invalid_request_error", "param": "model", "code": code } })
            }
        };
        Self {
            status: 404,
            details: "endpoint_picker_unknown_model",
            headers: vec![("content-type", "application/json")],
            body: body.to_string().into_bytes(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn the_error_body_has_the_shape_the_client_expects() {
        let openai = Reply::unavailable(Some(Dialect::ChatCompletions), NoPick::NoSnapshot);
        let body: Value = serde_json::from_slice(&openai.body).unwrap();
        assert_eq!((openai.status, &body["error"]["code"]), (503, &json!("no_snapshot")));
        assert!(openai.headers.contains(&("retry-after", "1")));

        let anthropic = Reply::unavailable(Some(Dialect::Messages), NoPick::AllFilteredOut);
        let body: Value = serde_json::from_slice(&anthropic.body).unwrap();
        assert_eq!(body["error"]["type"], "overloaded_error");

        let unknown = UnknownModel(b"no\xff\"such"[..].into());
        let openai = Reply::unknown_model(Some(Dialect::ChatCompletions), &unknown);
        let body: Value = serde_json::from_slice(&openai.body).unwrap();
        assert_eq!((openai.status, &body["error"]["code"]), (404, &json!("model_not_found")));
        assert_eq!(body["error"]["message"], "The model `no\u{fffd}\"such` does not exist");

        let anthropic = Reply::unknown_model(Some(Dialect::Messages), &unknown);
        let body: Value = serde_json::from_slice(&anthropic.body).unwrap();
        assert_eq!(body["error"]["type"], "not_found_error");
    }
}
