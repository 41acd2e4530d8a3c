//! The scraper without its I/O: whom to ask now, what an answer means, what to publish.

use std::time::Duration;

use super::discovery::Watch;
use super::vitals::{Limits, Vitals};
use super::{Discovery, Endpoint, Health, Lease, Snapshot, Target};
use crate::clock::Timestamp;
use crate::scrape::{self, Poller, ScrapeError, Settings};
use crate::store::Store;

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
    /// No response within the deadline, or none at all: it may be busy.
    TimedOut,
    /// The proxy did not send it, which says nothing of the server.
    Refused,
}

/// An answer booked to the endpoint that was asked.
#[derive(Debug)]
pub struct Booked {
    /// Index of the endpoint.
    pub endpoint: usize,
    /// How the scrape ended.
    pub outcome: Outcome,
    /// The endpoint's health, if it is worth reporting: another than was reported before, and that not just now.
    pub turned: Option<Health>,
}

/// Scrapes a pool in the caller's time.
#[derive(Debug)]
pub struct Collector {
    /// First those that are written in the configuration, then those that were found.
    pub(super) targets: Vec<Target>,
    /// How many of them are written.
    pub(super) written: usize,
    /// What is known, and under which version it was last written.
    pub(super) fleet: Snapshot,
    pub(super) vitals: Vec<Vitals>,
    pub(super) poller: Poller,
    limits: Limits,
    pub(super) changed: bool,
    pub(super) watch: Option<Watch>,
    /// Nothing was inherited, and nobody has been found yet: who is found now was there from the beginning.
    pub(super) young: bool,
}

impl Collector {
    /// A collector that knows nothing yet. `seed` is used unless there is a previous one to inherit.
    pub fn new(targets: Vec<Target>, scrape: &Settings, seed: u64, now: Timestamp) -> Self {
        let endpoints = targets.iter().map(|t| Endpoint::new(t.address)).collect();
        // Half the time in which signals go stale: one answer that never comes leaves time for another.
        let poller = Poller::new(targets.len(), scrape.interval, scrape.stale_after / 2, now);
        Self {
            fleet: Snapshot { version: 0, seed, endpoints },
            vitals: vec![Vitals::new(now); targets.len()],
            limits: Limits {
                failures: scrape.unhealthy_after,
                silence: scrape.stale_after,
                turn: poller.timeout().saturating_add(scrape.interval),
            },
            written: targets.len(),
            // Of a pool that is yet to be found there is nothing to tell.
            changed: !targets.is_empty(),
            targets,
            poller,
            watch: None,
            young: true,
        }
    }

    /// The same that also asks the proxy for the members of the pool, if there is something to ask.
    pub fn finding(self, discovery: Option<Discovery>, now: Timestamp) -> Self {
        Self { watch: discovery.map(|discovery| Watch::new(discovery, now)), ..self }
    }

    /// Goes on from what the previous holder of the lease knew. Endpoints it did not know join now.
    pub fn inherit(&mut self, previous: Snapshot, now: Timestamp) {
        (self.fleet.seed, self.fleet.version) = (previous.seed, previous.version);
        self.remember_members(&previous.endpoints, now);
        for (endpoint, vitals) in self.fleet.endpoints.iter_mut().zip(&mut self.vitals) {
            match previous.endpoints.iter().find(|old| old.address == endpoint.address) {
                Some(old) => {
                    endpoint.health = old.health;
                    endpoint.generation = old.generation;
                    endpoint.joined = old.joined;
                    endpoint.signals = old.signals.clone();
                    vitals.inherit(old.health);
                }
                // If it was in the pool before, it has been away: no generation it can have had then.
                None => {
                    endpoint.generation = (previous.version as u32).wrapping_add(1);
                    endpoint.joined = now;
                }
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
    pub fn refused(&mut self, endpoint: usize, now: Timestamp) -> Booked {
        self.book(endpoint, Outcome::Refused, now)
    }

    /// Gives up calls past their deadline; the host may never answer them.
    pub fn expire(&mut self, now: Timestamp) -> Vec<Booked> {
        let expired = self.poller.expired(now);
        expired.into_iter().map(|endpoint| self.book(endpoint, Outcome::TimedOut, now)).collect()
    }

    /// An answer came to somebody's call. Whether the call is ours, so that it is to be booked.
    pub fn expects(&mut self, call: u32) -> bool {
        self.poller.expects(call)
    }

    /// Books an answer, also one that came after its call was given up. `None`: a call that was never ours, or that
    /// counted as timed out and did.
    pub fn answered(&mut self, call: u32, answer: Answer<'_>, now: Timestamp) -> Option<Booked> {
        let timely = self.poller.finished(call);
        let index = timely.or_else(|| self.poller.finished_late(call))?;
        let spec = &self.targets.get(index)?.spec;
        let outcome = match answer.status {
            Some(200) if !answer.complete => Outcome::CutOff,
            Some(200) => match scrape::read(answer.body, spec) {
                Ok(reading) => {
                    self.fleet.endpoints.get_mut(index)?.signals.update(reading, now);
                    Outcome::Read
                }
                Err(error) => Outcome::NoMetrics(error),
            },
            Some(status) if status < 500 => Outcome::WrongPath(status),
            None | Some(504) => Outcome::TimedOut,
            Some(status) => Outcome::Failed(status),
        };
        let told = timely.is_none() && outcome == Outcome::TimedOut;
        (!told).then(|| self.book(index, outcome, now))
    }

    /// What is believed of each endpoint's life.
    pub fn health(&self) -> impl Iterator<Item = Health> {
        self.fleet.endpoints.iter().map(Endpoint::believed)
    }

    /// The endpoint at this place.
    pub fn target(&self, endpoint: usize) -> Option<&Target> {
        self.targets.get(endpoint)
    }

    /// Writes the fleet if it changed, under a version no snapshot had before, and lets `lease` carry the version last
    /// written. Whether it was written; else it is news the next time, too.
    pub fn publish(&mut self, store: &dyn Store, key: &[u8], lease: &mut Lease) -> bool {
        let written = self.fleet.version;
        let published = self.changed && {
            self.fleet.version = written.max(lease.snapshot).saturating_add(1);
            store.set(key, &self.fleet.encode(key), store.get(key).cas)
        };
        if published {
            self.changed = false;
        } else {
            self.fleet.version = written;
        }
        lease.snapshot = lease.snapshot.max(self.fleet.version);
        published
    }

    fn book(&mut self, index: usize, outcome: Outcome, now: Timestamp) -> Booked {
        let (Some(endpoint), Some(vitals)) = (self.fleet.endpoints.get_mut(index), self.vitals.get_mut(index)) else {
            return Booked { endpoint: index, outcome, turned: None };
        };
        let proven = vitals.judge(&outcome, now, self.limits);
        let health = proven.unwrap_or(endpoint.health);
        self.changed |= outcome == Outcome::Read || health != endpoint.health;
        if endpoint.health == Health::Unreachable && health != Health::Unreachable {
            endpoint.generation = endpoint.generation.wrapping_add(1);
            endpoint.joined = now;
        }
        endpoint.health = health;
        Booked { endpoint: index, outcome, turned: proven.and_then(|health| vitals.report(health, now)) }
    }
}
