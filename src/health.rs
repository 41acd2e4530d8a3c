//! Whether the filter is ready to pick, as an answer to whoever asks.

use std::time::Duration;

use serde_json::json;

use crate::clock::Timestamp;
use crate::fleet::fresh;
use crate::reply::Reply;
use crate::scrape::Signal;

/// What is known of the servers, by its age.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// No server has told anything yet.
    NoSnapshot,
    /// The newest signal is that old, which is too old.
    Stale(Duration),
    /// The newest signal is that old.
    Ready(Duration),
}

impl Readiness {
    /// `newest` is when any server was last heard of.
    pub fn of(newest: Option<Timestamp>, now: Timestamp, stale_after: Duration) -> Self {
        let Some(at) = newest else { return Self::NoSnapshot };
        let is_fresh = fresh(Some(&Signal { value: (), at }), now, stale_after).is_some();
        if is_fresh { Self::Ready(now.since(at)) } else { Self::Stale(now.since(at)) }
    }

    /// The answer to `method` at the health path of a pool: 200 when ready, else 503.
    pub fn reply(self, method: &[u8], pool: &str) -> Reply {
        if !matches!(method, b"GET" | b"HEAD") {
            let headers = vec![("allow", "GET, HEAD")];
            return Reply { status: 405, details: "endpoint_picker_health", headers, body: Vec::new() };
        }
        let (status, says, age) = match self {
            Self::NoSnapshot => (503, "no_snapshot", None),
            Self::Stale(age) => (503, "stale", Some(age)),
            Self::Ready(age) => (200, "ready", Some(age)),
        };
        let age = age.map(|age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX));
        let body = json!({ "status": says, "pool": pool, "age_ms": age });
        Reply {
            status,
            details: "endpoint_picker_health",
            headers: vec![("content-type", "application/json"), ("cache-control", "no-store")],
            body: body.to_string().into_bytes(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn ready_means_that_some_server_was_heard_of_lately() {
        let (now, limit) = (Timestamp(1_796_000_000_000), Duration::from_secs(2));
        for (ago, status, says) in [(Some(0), 200, "ready"), (Some(2000), 200, "ready"), (Some(2001), 503, "stale")] {
            let newest = ago.map(|ago| Timestamp(now.0 - ago));
            let reply = Readiness::of(newest, now, limit).reply(b"GET", "default");
            let body: Value = serde_json::from_slice(&reply.body).unwrap();
            assert_eq!((reply.status, &body), (status, &json!({ "status": says, "pool": "default", "age_ms": ago })));
        }
        let reply = Readiness::of(None, now, limit).reply(b"HEAD", "default");
        assert_eq!((reply.status, reply.body.is_empty()), (503, false));
        let hour_ahead = Timestamp(now.0 + 3_600_000);
        assert_eq!(Readiness::of(Some(hour_ahead), now, limit), Readiness::Stale(Duration::ZERO));
    }

    #[test]
    fn only_to_be_read() {
        let reply = Readiness::Ready(Duration::ZERO).reply(b"POST", "default");
        assert_eq!((reply.status, &reply.headers[..]), (405, &[("allow", "GET, HEAD")][..]));
    }
}
