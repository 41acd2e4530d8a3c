//! What the fleet's simulation asks of a router, and what it tells it.

use super::trace::Call;
use crate::engine::{Outcome, Stats};

/// One worker of a proxy.
pub trait Router {
    /// Places a call, known as `id` from now on; returns the engine.
    fn route(&mut self, id: usize, call: &Call, now: f64) -> usize;

    /// The first token of a call is back.
    fn first_token(&mut self, id: usize, now: f64);

    /// A call has ended. `outcome` is `None` if the engine did not take it.
    fn finished(&mut self, id: usize, outcome: Option<&Outcome>, now: f64);

    /// An engine's metrics were read.
    fn scraped(&mut self, engine: usize, gauges: &Gauges);

    /// A proxy calls its workers every 20 ms.
    fn tick(&mut self, _now: f64) {}
}

/// What a scrape shows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Gauges {
    /// When it was made.
    pub at: f64,
    /// Requests in the batch.
    pub running: u32,
    /// Requests in the queue.
    pub waiting: u32,
    /// Share of the KV blocks that requests hold, 0 to 1.
    pub kv_usage: f64,
}

impl Gauges {
    pub(super) fn of(stats: &Stats, at: f64) -> Self {
        Self { at, running: stats.running as u32, waiting: stats.waiting as u32, kv_usage: stats.kv_usage }
    }
}
