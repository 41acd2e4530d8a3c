//! Whether the filter is ready to pick.

use std::time::Duration;

use crate::clock::Timestamp;
use crate::fleet::fresh;
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_means_that_some_server_was_heard_of_lately() {
        let (now, limit) = (Timestamp(1_796_000_000_000), Duration::from_secs(2));
        let heard = |ago| Readiness::of(Some(Timestamp(now.0 - ago)), now, limit);
        assert_eq!(heard(0), Readiness::Ready(Duration::ZERO));
        assert_eq!(heard(2000), Readiness::Ready(limit));
        assert_eq!(heard(2001), Readiness::Stale(Duration::from_millis(2001)));
        assert_eq!(Readiness::of(None, now, limit), Readiness::NoSnapshot);
        let hour_ahead = Timestamp(now.0 + 3_600_000);
        assert_eq!(Readiness::of(Some(hour_ahead), now, limit), Readiness::Stale(Duration::ZERO));
    }
}
