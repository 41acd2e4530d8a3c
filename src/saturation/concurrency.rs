//! `concurrency-detector`: by what this proxy has in flight, which is known at once and never stale.
//!
//! What is in flight at all servers, of what may be: `requests` of `maxConcurrency` each, or uncached prompt `tokens` of
//! `maxTokenConcurrency` each, whose first token has not come. `hybrid`: the greater of both shares at each server, and the
//! mean of these. As a filter it leaves servers with less in flight than the most times `1 + headroom`.

use serde::Deserialize;

use super::{Detector, Room, Seen};
use crate::clock::Timestamp;

/// Full when enough is in flight.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Concurrency {
    /// Requests in flight at which a server is full; at least 1.
    #[serde(deserialize_with = "crate::parameters::positive")]
    max_concurrency: u32,
    /// Prompt tokens in flight at which a server is full; at least 1.
    #[serde(deserialize_with = "crate::parameters::positive")]
    max_token_concurrency: u32,
    mode: Mode,
    /// For the filter: by what share of the most a server may be above it, 0..=1.
    #[serde(deserialize_with = "crate::parameters::share")]
    headroom: f64,
}

/// What is counted.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Mode {
    Requests,
    Tokens,
    Hybrid,
}

impl Default for Concurrency {
    fn default() -> Self {
        Self { max_concurrency: 100, max_token_concurrency: 1_000_000, mode: Mode::Requests, headroom: 0.0 }
    }
}

impl Concurrency {
    fn used(&self, seen: &Seen<'_>) -> Room {
        let room = |used: u32, whole: u32| Room { used: used.into(), whole: whole.into() };
        let (requests, tokens) =
            (room(seen.requests, self.max_concurrency), room(seen.tokens, self.max_token_concurrency));
        match self.mode {
            Mode::Requests => requests,
            Mode::Tokens => tokens,
            Mode::Hybrid => Room { used: (requests.used / requests.whole).max(tokens.used / tokens.whole), whole: 1.0 },
        }
    }
}

impl Detector for Concurrency {
    fn room(&self, seen: &Seen<'_>, _: Timestamp) -> Option<Room> {
        Some(self.used(seen))
    }

    fn admits(&self, seen: &Seen<'_>, _: Timestamp) -> bool {
        let room = self.used(seen);
        room.used < room.whole * (1.0 + self.headroom)
    }
}
