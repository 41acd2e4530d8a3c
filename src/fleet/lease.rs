//! Who scrapes.
//!
//! Each candidate reads the lease every tick and writes it back with compare-and-set when [`Lease::claim`] says so.
//! Envoy's bootstrap singleton holds it by right; a singleton that trapped never comes back, so any worker takes the
//! lease over once it has run out. After a change of the configuration the proxy keeps the old workers' contexts, which
//! would renew the lease for minutes; so a worker whose configuration is another and newer takes it at once. The lease also
//! carries the newest snapshot's version: one small read per tick tells a worker both whether the scraper lives and
//! whether there is anything new.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::envelope;

/// The record in shared data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// The member that scrapes.
    pub holder: u64,
    /// The holder is the singleton.
    pub by_right: bool,
    /// When the holder got its configuration.
    pub since: Timestamp,
    /// What the holder's configuration says of scraping, as [`fingerprint`](super::fingerprint).
    pub configuration: u64,
    /// When it runs out unless renewed.
    pub until: Timestamp,
    /// Version of the newest snapshot.
    pub snapshot: u64,
}

/// One that may scrape.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    /// Random, unique among the workers of a proxy.
    pub id: u64,
    /// It is the singleton.
    pub by_right: bool,
    /// When it got its configuration and started to look at the lease.
    pub since: Timestamp,
    /// What its configuration says of scraping, as [`fingerprint`](super::fingerprint).
    pub configuration: u64,
}

/// What a member shall do about the lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// Scrape, and write this.
    Hold(Lease),
    /// Somebody else scrapes.
    Wait,
}

impl Lease {
    /// How long a holder may be silent. Long enough for a busy main thread, short against the age at which signals are
    /// no longer believed (2 s by default).
    pub const SPAN: Duration = Duration::from_secs(1);

    /// Decides from the record found. Where there is none, the singleton takes it at once and everyone else gives the
    /// singleton one span to appear.
    pub fn claim(current: Option<&Self>, me: Member, now: Timestamp) -> Claim {
        let mine = |snapshot| {
            let Member { id: holder, by_right, since, configuration } = me;
            Claim::Hold(Self { holder, by_right, since, configuration, until: now.plus(Self::SPAN), snapshot })
        };
        let Some(lease) = current else {
            return if me.by_right || now.since(me.since) > Self::SPAN { mine(0) } else { Claim::Wait };
        };
        // Workers of one configuration leave each other alone.
        let outdated = me.configuration != lease.configuration && me.since > lease.since;
        let outranked = !lease.by_right && (me.by_right || outdated);
        if lease.holder == me.id || lease.has_expired(now) || outranked { mine(lease.snapshot) } else { Claim::Wait }
    }

    /// The holder has been silent for too long. A lease that ends later than any renewal could make it was written before
    /// the clock stepped back.
    pub fn has_expired(&self, now: Timestamp) -> bool {
        now > self.until || self.until > now.plus(2 * Self::SPAN)
    }

    /// The value to store under `key`.
    pub fn encode(&self, key: &[u8]) -> Vec<u8> {
        let payload = postcard::to_allocvec(self).unwrap_or_default();
        envelope::seal(key, self.snapshot, &payload)
    }

    /// Reads a value found under `key`; `None` if it is torn or foreign.
    pub fn decode(key: &[u8], bytes: &[u8]) -> Option<Self> {
        postcard::from_bytes(envelope::open(key, bytes)?.payload).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp(10_000);
    const SINGLETON: Member = Member { id: 1, by_right: true, since: START, configuration: 7 };
    const WORKER: Member = Member { id: 2, by_right: false, since: START, configuration: 7 };

    fn held(claim: Claim) -> Lease {
        match claim {
            Claim::Hold(lease) => lease,
            Claim::Wait => panic!("should hold"),
        }
    }

    fn at(millis: u64) -> Timestamp {
        START.plus(Duration::from_millis(millis))
    }

    #[test]
    fn the_singleton_scrapes_at_once_and_workers_wait_for_it() {
        assert_eq!(Lease::claim(None, WORKER, START), Claim::Wait);
        let lease = held(Lease::claim(None, SINGLETON, START));
        assert_eq!(Lease::claim(Some(&lease), WORKER, at(900)), Claim::Wait);
    }

    #[test]
    fn without_a_singleton_a_worker_scrapes_after_one_span() {
        assert_eq!(Lease::claim(None, WORKER, at(1_000)), Claim::Wait);
        assert_eq!(held(Lease::claim(None, WORKER, at(1_001))).holder, WORKER.id);
    }

    #[test]
    fn a_dead_holder_is_replaced_within_one_and_a_half_seconds() {
        let mut lease = held(Lease::claim(None, SINGLETON, START));
        lease.snapshot = 42;
        let takeover = (0..).step_by(20).find(|t| Lease::claim(Some(&lease), WORKER, at(*t)) != Claim::Wait).unwrap();
        assert!(takeover <= 1_500, "took {takeover} ms");
        let taken = held(Lease::claim(Some(&lease), WORKER, at(takeover)));
        assert_eq!((taken.holder, taken.snapshot), (WORKER.id, 42), "versions go on from where they were");
    }

    #[test]
    fn a_singleton_that_came_back_outranks_the_worker() {
        let lease = held(Lease::claim(None, WORKER, at(2_000)));
        assert_eq!(held(Lease::claim(Some(&lease), SINGLETON, at(2_010))).holder, SINGLETON.id);
    }

    #[test]
    fn a_clock_that_stepped_back_does_not_leave_the_pool_without_a_scraper() {
        let lease = held(Lease::claim(None, SINGLETON, at(3_600_000)));
        assert_eq!(held(Lease::claim(Some(&lease), WORKER, START)).holder, WORKER.id);
    }

    /// Ticks of all members every 20 ms; who holds the lease at the end of each.
    fn holders(lease: &mut Option<Lease>, members: &[Member], span: std::ops::Range<u64>) -> Vec<u64> {
        let ticks = span.step_by(20).map(|t| {
            for member in members.iter().filter(|member| member.since <= at(t)) {
                if let Claim::Hold(held) = Lease::claim(lease.as_ref(), *member, at(t)) {
                    *lease = Some(held);
                }
            }
            lease.as_ref().map_or(0, |lease| lease.holder)
        });
        ticks.collect()
    }

    #[test]
    fn a_new_configuration_is_scraped_at_once_although_the_old_worker_lives_on() {
        let mut lease = None;
        let old = [WORKER, Member { id: 3, ..WORKER }];
        assert!(holders(&mut lease, &old, 0..5_000).ends_with(&[WORKER.id]));

        let new = |id, since| Member { id, since: at(since), configuration: 8, ..WORKER };
        let all = [&old[..], &[new(4, 5_030), new(5, 5_010)]].concat();
        let since = holders(&mut lease, &all, 5_000..30_000);
        assert_eq!(since[..2], [WORKER.id, 5], "at its first tick");
        assert!(
            since[1..].iter().all(|holder| *holder == 5),
            "those of one configuration take nothing from each other"
        );
    }

    #[test]
    fn a_worker_that_starts_later_with_the_same_configuration_takes_nothing() {
        let mut lease = None;
        let members = [WORKER, Member { id: 3, since: at(2_000), ..WORKER }];
        assert!(holders(&mut lease, &members, 1_020..10_000).iter().all(|holder| *holder == WORKER.id));
    }

    #[test]
    fn a_new_configuration_does_not_outrank_the_singleton() {
        let mut lease = None;
        let members = [SINGLETON, Member { id: 3, since: at(2_000), configuration: 8, ..WORKER }];
        assert!(holders(&mut lease, &members, 0..10_000).iter().all(|holder| *holder == SINGLETON.id));
    }
}
