//! How full a pool is, from 0 for idle; 1 and more: full.
//!
//! A [`Detector`] says of each server how much of its room is used. The pool's saturation is what is used of all room
//! there is, which is a mean and hides one hot server among idle ones; so the hottest is told beside it. Formulas, names
//! and defaults are those of llm-d's endpoint picker.
//!
//! Saturation decides one thing: requests that may be shed are, while the pool is full (see [`crate::objectives`]). A
//! detector that is named as a filter leaves out the servers that are full, unless all are.

mod concurrency;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod utilization;

pub use concurrency::Concurrency;
pub use utilization::Utilization;

use std::time::Duration;

use crate::clock::Timestamp;
use crate::fleet::{Endpoint, Health, Signals};
use crate::ledger::Line;
use crate::period::Period;

/// How old a signal may be, 40 ms to 10 min; `None` until it is known how often signals are read.
pub type Staleness = Option<Period<40, 600_000>>;

/// How old a signal may be where it is not said, unless signals are read so seldom that twice the time between is longer.
pub const STALENESS: Duration = Duration::from_millis(200);

/// A server as detectors see it.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// Whether it lives.
    pub health: Health,
    /// What it told, and when.
    pub signals: &'a Signals,
    /// Requests this proxy has in flight there.
    pub requests: u32,
    /// Uncached prompt tokens of those of them that wait for their first token.
    pub tokens: u32,
}

/// What is used of a server, of how much, in any unit. Amounts of one detector have the same unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Room {
    /// Not negative; more than `whole` if requests wait.
    pub used: f64,
    /// More than 0.
    pub whole: f64,
}

/// What was found of a pool.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Survey {
    /// The saturation of the pool; 1 without any server.
    pub pool: f64,
    /// That of its hottest server.
    pub hottest: f64,
    /// Servers of which nothing recent is known that the detector could judge by.
    pub stale: u64,
}

/// Tells how full servers are.
pub trait Detector {
    /// How full a server is; `None`: nothing recent is known of it.
    fn room(&self, seen: &Seen<'_>, now: Timestamp) -> Option<Room>;

    /// What to take for a server of which nothing recent is known; `None`: it does not count.
    fn unknown(&self) -> Option<Room> {
        None
    }

    /// As a filter: the server has room for one more.
    fn admits(&self, seen: &Seen<'_>, now: Timestamp) -> bool;

    /// How old a signal it believes, if it looks at signals.
    fn staleness(&mut self) -> Option<&mut Staleness> {
        None
    }
}

impl<'a> Seen<'a> {
    /// `own` is what this proxy has in flight there.
    pub fn of(endpoint: &'a Endpoint, own: &Line) -> Self {
        Self {
            health: endpoint.believed(),
            signals: &endpoint.signals,
            requests: own.requests,
            tokens: own.prefill_tokens,
        }
    }
}

impl Survey {
    /// Looks at a pool; servers that take no new requests are not to be in it. Unreachable ones are no room, unless all are.
    pub fn of(detector: &dyn Detector, pool: &[Seen<'_>], now: Timestamp) -> Self {
        let lives = |seen: &Seen<'_>| seen.health != Health::Unreachable;
        let all = !pool.iter().any(lives);
        let (mut sum, mut hottest, mut stale) = (Room { used: 0.0, whole: 0.0 }, 0.0_f64, 0);
        for seen in pool {
            let known = detector.room(seen, now);
            stale += u64::from(known.is_none());
            if let Some(room) = known.or_else(|| detector.unknown()).filter(|_| all || lives(seen)) {
                sum = Room { used: sum.used + room.used, whole: sum.whole + room.whole };
                hottest = hottest.max(room.used / room.whole);
            }
        }
        if pool.is_empty() {
            return Self { pool: 1.0, hottest: 1.0, stale };
        }
        Self { pool: if sum.whole > 0.0 { sum.used / sum.whole } else { 0.0 }, hottest, stale }
    }

    /// Nothing more fits.
    pub fn is_full(&self) -> bool {
        self.pool >= 1.0
    }
}
