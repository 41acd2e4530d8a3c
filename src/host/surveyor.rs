//! What the holder of the lease tells of the fleet as a whole.

use std::time::Duration;

use log::warn;

use super::abi::SharedData;
use super::metrics::Metrics;
use crate::clock::Timestamp;
use crate::config::{Config, Sharing};
use crate::fleet::Collector;
use crate::ledger::{Book, Ledger};
use crate::saturation::{Seen, Survey};

/// Servers that tell nothing change nothing either, but that is news, too.
const AT_LEAST_EVERY: Duration = Duration::from_secs(1);

/// Servers that are silent stay so for a while, so one line a minute tells it.
const BETWEEN_COMPLAINTS: Duration = Duration::from_secs(60);

/// Sets the gauges.
#[derive(Debug)]
pub(super) struct Surveyor {
    /// Before the first scrapes it is no news that nobody has told anything.
    began: Timestamp,
    surveyed: Timestamp,
    complained: Option<Timestamp>,
}

impl Surveyor {
    pub(super) fn new(now: Timestamp) -> Self {
        Self { began: now, surveyed: now, complained: None }
    }

    /// The last survey is long ago.
    pub(super) fn is_due(&self, now: Timestamp) -> bool {
        now.since(self.surveyed) >= AT_LEAST_EVERY
    }

    /// Looks at the fleet.
    pub(super) fn survey(
        &mut self,
        config: &Config,
        worker: u64,
        fleet: &Collector,
        metrics: &mut Metrics,
        now: Timestamp,
    ) {
        self.surveyed = now;
        metrics.fleet(fleet.endpoints());
        let mut book = Book::default();
        if config.ledger == Sharing::Shared {
            book = Ledger::new(&config.pool.name, worker).read(&SharedData).book;
            metrics.in_flight(book.lines().map(|(_, line)| u64::from(line.requests)).sum());
        }
        let seen: Vec<_> = fleet.open().map(|endpoint| Seen::of(endpoint, &book.line(endpoint.id()))).collect();
        let stale_after = config.scrape.stale_after;
        let ledger_alone = !seen.iter().any(|seen| seen.signals.are_fresh(now, stale_after));
        metrics.saturation(&Survey::of(&*config.saturation.detector, &seen, now), ledger_alone);
        let recent = |at| at <= now && now.since(at) < BETWEEN_COMPLAINTS;
        if ledger_alone && now.since(self.began) > stale_after && !self.complained.is_some_and(recent) {
            self.complained = Some(now);
            let pool = &config.pool.name;
            warn!("pool {pool}: no server has told its load for {stale_after:?}; what is in flight decides alone");
        }
    }
}
