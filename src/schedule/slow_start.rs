//! An endpoint new to the fleet takes part at once but never gets a herd.
//!
//! Empty and unused it looks best by every measure, while its caches are cold and its kernels not yet compiled. So as it
//! warms up it may have in flight at most a share of what those that are warm have on average: as much of it as of the
//! warm-up has passed, and one request in any case. A fleet that is new as a whole has nobody to be compared with, and
//! nobody is held back.

use std::time::Duration;

use super::Candidate;
use crate::clock::Timestamp;
use crate::fleet::Health;

/// How much of its warm-up an endpoint has behind it, 0..=1, if it came at `joined`.
pub(crate) fn warmth(joined: Timestamp, warmup: Duration, now: Timestamp) -> f64 {
    // A clock that stepped back says nothing of how long the server has been there.
    if warmup.is_zero() || joined > now {
        return 1.0;
    }
    (now.since(joined).as_secs_f64() / warmup.as_secs_f64()).min(1.0)
}

/// Takes out endpoints that are warming up and have their share. Returns them.
pub(super) fn hold_back<'a>(candidates: &mut Vec<Candidate<'a>>) -> Vec<Candidate<'a>> {
    let is_warm = |candidate: &Candidate<'_>| candidate.warmth >= 1.0;
    let warm = candidates.iter().filter(|candidate| is_warm(candidate) && candidate.health != Health::Unreachable);
    let (sum, count) = warm.fold((0.0, 0.0), |(sum, count), warm| (sum + f64::from(warm.in_flight), count + 1.0));
    if count == 0.0 {
        return Vec::new();
    }
    let share = |warmth: f64| (warmth * sum / count).max(1.0);
    let has_it = |candidate: &Candidate<'_>| f64::from(candidate.in_flight) >= share(candidate.warmth);
    candidates.extract_if(.., |candidate| !is_warm(candidate) && has_it(candidate)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who is left of endpoints with this warmth and as many requests in flight.
    fn left(endpoints: &[(f64, u32)]) -> Vec<usize> {
        let candidate = |(index, (warmth, in_flight)): (usize, &(f64, u32))| Candidate {
            index,
            warmth: *warmth,
            in_flight: *in_flight,
            health: Health::Serving,
            ..Candidate::named("10.0.0.1:8000")
        };
        let mut candidates: Vec<_> = endpoints.iter().enumerate().map(candidate).collect();
        hold_back(&mut candidates);
        candidates.into_iter().map(|candidate| candidate.index).collect()
    }

    #[test]
    fn a_newcomer_has_at_most_its_share_in_flight() {
        assert_eq!(left(&[(1.0, 10), (1.0, 30), (0.5, 9)]), [0, 1, 2]);
        assert_eq!(left(&[(1.0, 10), (1.0, 30), (0.5, 10)]), [0, 1], "half of 20");
        assert_eq!(left(&[(1.0, 10), (1.0, 30), (1.0, 99)]), [0, 1, 2], "who is warm is not held back");
    }

    #[test]
    fn a_newcomer_takes_part_at_once() {
        assert_eq!(left(&[(1.0, 40), (0.0, 0)]), [0, 1]);
        assert_eq!(left(&[(1.0, 0), (0.0, 1)]), [0]);
    }

    #[test]
    fn nobody_is_held_back_where_nobody_else_can_serve() {
        assert_eq!(left(&[(0.0, 5), (0.9, 50)]), [0, 1]);
    }

    #[test]
    fn the_warm_up_ends() {
        let at = |ms| warmth(Timestamp(100_000), Duration::from_secs(30), Timestamp(ms));
        assert_eq!((at(100_000), at(115_000), at(130_000), at(200_000)), (0.0, 0.5, 1.0, 1.0));
        assert_eq!(at(50_000), 1.0, "the clock stepped back");
        assert_eq!(warmth(Timestamp(0), Duration::ZERO, Timestamp(0)), 1.0, "no warm-up is wanted");
    }
}
