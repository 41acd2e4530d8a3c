//! The scraper without its I/O: whom to ask now, what an answer means, what to publish.

use std::time::Duration;

use super::{Endpoint, Health, Snapshot, Target};
use crate::clock::Timestamp;
use crate::scrape::{self, Poller, ScrapeError};

/// What came back from a scrape.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// HTTP status; `None` when no response came. The proxy itself answers 503 and 504 for a server that does not.
    pub status: Option<u16>,
    /// The body arrived as long as it was declared.
    pub complete: bool,
    /// The body.
    pub body: &'a [u8],
}

/// How a scrape ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Signals were read.
    Read,
    /// The server answered, but not with metrics we know.
    NoMetrics(ScrapeError),
    /// The text was shorter than declared, so sums over its series would be too small.
    CutOff,
    /// A redirect or a client error: the server lives, the path is wrong.
    WrongPath(u16),
    /// A server error, from the server or from the proxy in its place.
    Failed(u16),
    /// No response within the deadline.
    TimedOut,
}

/// An answer booked to the endpoint that was asked.
#[derive(Debug)]
pub struct Booked {
    /// Index of the endpoint.
    pub endpoint: usize,
    /// How the scrape ended.
    pub outcome: Outcome,
    /// The endpoint's health changed to this.
    pub turned: Option<Health>,
}

/// Scrapes a pool in the caller's time.
#[derive(Debug)]
pub struct Collector {
    targets: Vec<Target>,
    endpoints: Vec<Endpoint>,
    failures: Vec<u32>,
    poller: Poller,
    seed: u64,
    unhealthy_after: u32,
    changed: bool,
}

impl Collector {
    /// A collector that knows nothing yet. `unhealthy_after`: failed scrapes in a row until an endpoint counts as
    /// unreachable. `seed` is used unless there is a previous one to inherit.
    pub fn new(targets: Vec<Target>, interval: Duration, unhealthy_after: u32, seed: u64, now: Timestamp) -> Self {
        let endpoints: Vec<_> = targets.iter().map(|t| Endpoint::new(t.address, t.labels.clone())).collect();
        Self {
            failures: vec![0; targets.len()],
            poller: Poller::new(targets.len(), interval, now),
            targets,
            endpoints,
            seed,
            unhealthy_after,
            changed: true,
        }
    }

    /// Goes on from what the previous holder of the lease knew.
    pub fn inherit(&mut self, previous: Snapshot) {
        self.seed = previous.seed;
        for old in previous.endpoints {
            if let Some(endpoint) = self.endpoints.iter_mut().find(|e| e.address == old.address) {
                endpoint.health = old.health;
                endpoint.signals = old.signals;
            }
        }
    }

    /// The deadline of a scrape.
    pub fn timeout(&self) -> Duration {
        self.poller.timeout()
    }

    /// The endpoints to ask now.
    pub fn due(&mut self, now: Timestamp) -> Vec<(usize, &Target)> {
        let due = self.poller.due(now);
        due.into_iter().filter_map(|index| Some((index, self.targets.get(index)?))).collect()
    }

    /// The scrape of `endpoint` is under way as host call `call`.
    pub fn started(&mut self, endpoint: usize, call: u32, now: Timestamp) {
        self.poller.started(endpoint, call, now);
    }

    /// The host would not even send the scrape.
    pub fn refused(&mut self, endpoint: usize) -> Booked {
        self.book(endpoint, Outcome::TimedOut)
    }

    /// Gives up calls past their deadline; the host may never answer them.
    pub fn expire(&mut self, now: Timestamp) -> Vec<Booked> {
        let expired = self.poller.expired(now);
        expired.into_iter().map(|endpoint| self.book(endpoint, Outcome::TimedOut)).collect()
    }

    /// Books an answer. `None`: a call that was given up, or was never ours.
    pub fn answered(&mut self, call: u32, answer: Answer<'_>, now: Timestamp) -> Option<Booked> {
        let index = self.poller.finished(call)?;
        let spec = &self.targets.get(index)?.spec;
        let outcome = match answer.status {
            Some(200) if !answer.complete => Outcome::CutOff,
            Some(200) => match scrape::read(answer.body, spec) {
                Ok(reading) => {
                    self.endpoints.get_mut(index)?.signals.update(reading, now);
                    Outcome::Read
                }
                Err(error) => Outcome::NoMetrics(error),
            },
            Some(status) if status < 500 => Outcome::WrongPath(status),
            Some(status) => Outcome::Failed(status),
            None => Outcome::TimedOut,
        };
        Some(self.book(index, outcome))
    }

    /// The fleet, if it changed since [`published`](Self::published) was called.
    pub fn news(&self, version: u64) -> Option<Snapshot> {
        self.changed.then(|| Snapshot { version, seed: self.seed, endpoints: self.endpoints.clone() })
    }

    /// Everyone can read the news.
    pub fn published(&mut self) {
        self.changed = false;
    }

    fn book(&mut self, index: usize, outcome: Outcome) -> Booked {
        let (Some(endpoint), Some(failures)) = (self.endpoints.get_mut(index), self.failures.get_mut(index)) else {
            return Booked { endpoint: index, outcome, turned: None };
        };
        let before = endpoint.health;
        match outcome {
            Outcome::Read => {
                *failures = 0;
                endpoint.health = Health::Serving;
            }
            // It answered, so it lives; its signals age and the ledger must do.
            Outcome::NoMetrics(_) | Outcome::CutOff | Outcome::WrongPath(_) => {
                *failures = 0;
                endpoint.health = Health::Assumed;
            }
            Outcome::Failed(_) | Outcome::TimedOut => {
                *failures = failures.saturating_add(1);
                if *failures >= self.unhealthy_after {
                    endpoint.health = Health::Unreachable;
                }
            }
        }
        let turned = (endpoint.health != before).then_some(endpoint.health);
        self.changed |= outcome == Outcome::Read || turned.is_some();
        Booked { endpoint: index, outcome, turned }
    }
}
