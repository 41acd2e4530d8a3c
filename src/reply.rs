//! Answers the filter gives itself, in the dialect the client speaks.

use serde_json::json;

use crate::health::Readiness;
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
    /// For a request that found no endpoint: the client should try again shortly. 429 if it was shed, else 503.
    pub fn unavailable(dialect: Option<Dialect>, why: NoPick) -> Self {
        let (kind, code) = match why {
            NoPick::NoSnapshot => ("service_unavailable", "no_snapshot"),
            NoPick::EmptySubset => ("service_unavailable", "empty_subset"),
            NoPick::AllFilteredOut => ("service_unavailable", "all_filtered_out"),
            NoPick::Saturated => ("rate_limit_error", "rate_limit_exceeded"),
        };
        let shed = why == NoPick::Saturated;
        let message = why.to_string();
        let body = match dialect {
            Some(Dialect::Messages) => {
                let kind = if shed { kind } else { "overloaded_error" };
                json!({ "type": "error", "error": { "type": kind, "message": message } })
            }
            _ => json!({ "error": { "message": message, "type": kind, "code": code } }),
        };
        Self {
            status: if shed { 429 } else { 503 },
            details: if shed { "endpoint_picker_shed" } else { "endpoint_picker_no_endpoint" },
            headers: vec![
                ("content-type", "application/json"),
                ("retry-after", "1"),
                ("x-llm-d-request-dropped-reason", if shed { "rejected-saturated" } else { "rejected-no-endpoints" }),
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

    /// The answer to `method` at the health path of a pool: 200 when ready, else 503.
    pub fn readiness(method: &[u8], pool: &str, readiness: Readiness) -> Self {
        if !matches!(method, b"GET" | b"HEAD") {
            let headers = vec![("allow", "GET, HEAD")];
            return Self { status: 405, details: "endpoint_picker_health", headers, body: Vec::new() };
        }
        let (status, says, age) = match readiness {
            Readiness::NoSnapshot => (503, "no_snapshot", None),
            Readiness::Stale(age) => (503, "stale", Some(age)),
            Readiness::Ready(age) => (200, "ready", Some(age)),
        };
        let age = age.map(|age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX));
        let body = json!({ "status": says, "pool": pool, "age_ms": age });
        Self {
            status,
            details: "endpoint_picker_health",
            headers: vec![("content-type", "application/json"), ("cache-control", "no-store")],
            body: body.to_string().into_bytes(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

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

    #[test]
    fn a_request_that_is_shed_hears_that_it_was_one_too_many() {
        let openai = Reply::unavailable(Some(Dialect::Completions), NoPick::Saturated);
        let body: Value = serde_json::from_slice(&openai.body).unwrap();
        assert_eq!((openai.status, &body["error"]["type"]), (429, &json!("rate_limit_error")));
        assert!(openai.headers.contains(&("x-llm-d-request-dropped-reason", "rejected-saturated")));
        assert!(openai.headers.contains(&("retry-after", "1")));

        let anthropic = Reply::unavailable(Some(Dialect::Messages), NoPick::Saturated);
        let body: Value = serde_json::from_slice(&anthropic.body).unwrap();
        assert_eq!((&body["type"], &body["error"]["type"]), (&json!("error"), &json!("rate_limit_error")));
    }

    #[test]
    fn readiness_is_to_be_read_only() {
        let age = Duration::from_millis(42);
        for (readiness, status, says) in [(Readiness::Ready(age), 200, "ready"), (Readiness::Stale(age), 503, "stale")]
        {
            let reply = Reply::readiness(b"GET", "default", readiness);
            let body: Value = serde_json::from_slice(&reply.body).unwrap();
            assert_eq!((reply.status, &body), (status, &json!({ "status": says, "pool": "default", "age_ms": 42 })));
        }
        let reply = Reply::readiness(b"HEAD", "default", Readiness::NoSnapshot);
        assert_eq!((reply.status, reply.body.is_empty()), (503, false));
        let reply = Reply::readiness(b"POST", "default", Readiness::NoSnapshot);
        assert_eq!((reply.status, &reply.headers[..]), (405, &[("allow", "GET, HEAD")][..]));
    }
}
