//! `healthy`: not the endpoints whose scrapes keep failing.
//!
//! An endpoint of which nothing is known takes part. If none is left, all are kept: metrics that fail everywhere while
//! the servers answer are more likely than a pool that died at one stroke, and a dead pool answers 503 by itself.

use crate::fleet::Health;
use crate::schedule::{Candidate, Filter, Request, Rng};

/// Removes unreachable endpoints.
#[derive(Debug)]
pub struct Healthy;

impl Filter for Healthy {
    fn filter(&self, _: &Request<'_>, candidates: &mut Vec<Candidate<'_>>, _: &mut Rng) {
        if candidates.iter().any(|c| c.health != Health::Unreachable) {
            candidates.retain(|c| c.health != Health::Unreachable);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(health: [Health; 3]) -> Vec<&'static str> {
        let mut candidates: Vec<_> = ["a", "b", "c"].map(Candidate::named).into();
        for (candidate, health) in candidates.iter_mut().zip(health) {
            candidate.health = health;
        }
        Healthy.filter(&Request::default(), &mut candidates, &mut Rng::new(1));
        candidates.iter().map(|c| c.address).collect()
    }

    #[test]
    fn unreachable_endpoints_are_left_out() {
        assert_eq!(kept([Health::Unreachable, Health::Serving, Health::Assumed]), ["b", "c"]);
    }

    #[test]
    fn metrics_that_fail_everywhere_do_not_close_the_pool() {
        assert_eq!(kept([Health::Unreachable; 3]), ["a", "b", "c"]);
    }
}
