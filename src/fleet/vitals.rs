//! From the ends of scrapes to a server's health, and what of it is worth telling.

use std::time::Duration;

use super::{Health, Outcome};
use crate::clock::Timestamp;

/// A server that flaps would else fill the log.
const BETWEEN_REPORTS: Duration = Duration::from_secs(10);

/// When a server counts as unreachable.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// After so many failures in a row.
    pub(super) failures: u32,
    /// After so long without contact.
    pub(super) silence: Duration,
    /// The longest time between the ends of two scrapes that is silence of the server; what is longer is a pause of ours.
    pub(super) turn: Duration,
}

/// What is remembered of one server's scrapes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Vitals {
    failures: u32,
    silence: Duration,
    /// When the newest scrape ended.
    ended: Timestamp,
    reported: Option<Health>,
    reported_at: Option<Timestamp>,
}

impl Vitals {
    pub(super) fn new(now: Timestamp) -> Self {
        Self { failures: 0, silence: Duration::ZERO, ended: now, reported: None, reported_at: None }
    }

    /// Somebody else has told this.
    pub(super) fn inherit(&mut self, health: Health) {
        self.reported = Some(health).filter(|health| *health != Health::Assumed);
    }

    /// A scrape ended; the health it proves, if it proves any.
    pub(super) fn judge(&mut self, outcome: &Outcome, now: Timestamp, limits: Limits) -> Option<Health> {
        let turn = now.since(self.ended).min(limits.turn);
        self.ended = now;
        match outcome {
            Outcome::Read => self.lives(Health::Serving),
            // It answered, so it lives; its signals age and the ledger must do.
            Outcome::NoMetrics(_) | Outcome::CutOff | Outcome::WrongPath(_) => self.lives(Health::Assumed),
            Outcome::Failed(_) => {
                self.failures = self.failures.saturating_add(1);
                (self.failures >= limits.failures).then_some(Health::Unreachable)
            }
            // It may only be busy.
            Outcome::TimedOut => {
                self.silence = self.silence.saturating_add(turn);
                (self.silence >= limits.silence).then_some(Health::Unreachable)
            }
            Outcome::Refused => None,
        }
    }

    /// The health, if it is another than was last reported and that was long enough ago.
    pub(super) fn report(&mut self, health: Health, now: Timestamp) -> Option<Health> {
        let recent = self.reported_at.is_some_and(|at| at <= now && now.since(at) < BETWEEN_REPORTS);
        if recent || self.reported == Some(health) {
            return None;
        }
        (self.reported, self.reported_at) = (Some(health), Some(now));
        Some(health)
    }

    fn lives(&mut self, health: Health) -> Option<Health> {
        (self.failures, self.silence) = (0, Duration::ZERO);
        Some(health)
    }
}
