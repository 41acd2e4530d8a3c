//! An endpoint that fails its requests gets one now and then, to see whether it still does.
//!
//! That it answers scrapes says little: a server out of memory, or with a broken model, does so and fails fast, and looks idle
//! the more it fails. What the requests themselves tell is in [`Standing`]. If nobody is sound, all take part as if they were:
//! then the fault is more likely elsewhere, and a request that may fail is better than none.
//!
//! At most half of the candidates are held back, rounded down, the first ones; other failing ones take part as if they were
//! sound. Where more than half fail, the fault may be in the requests: one client whose prompts no server can answer must not
//! leave a whole fleet's load to the one server that it did not get to.

use super::Candidate;
use crate::fleet::Health;
use crate::learned::Standing;

/// Takes out endpoints that are failing and are not due for a probe. Returns them.
pub(super) fn hold_back<'a>(candidates: &mut Vec<Candidate<'a>>) -> Vec<Candidate<'a>> {
    // Scrapes that fail everywhere say nothing of anybody.
    let scraped = candidates.iter().any(|c| c.health != Health::Unreachable);
    let can_serve = |c: &Candidate<'_>| c.standing == Standing::Sound && (c.health != Health::Unreachable || !scraped);
    if candidates.iter().any(can_serve) {
        let most = candidates.len() / 2;
        let failing = candidates.extract_if(.., |candidate| candidate.standing == Standing::Failing);
        let held_back: Vec<_> = failing.take(most).collect();
        let others = candidates.iter_mut().filter(|candidate| candidate.standing == Standing::Failing);
        others.for_each(|candidate| candidate.standing = Standing::Sound);
        return held_back;
    }
    candidates.iter_mut().for_each(|candidate| candidate.standing = Standing::Sound);
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(endpoints: &[(Standing, Health)]) -> Vec<(usize, Standing)> {
        let candidate = |(index, (standing, health)): (usize, &(Standing, Health))| Candidate {
            index,
            standing: *standing,
            health: *health,
            ..Candidate::named("10.0.0.1:8000")
        };
        let mut candidates: Vec<_> = endpoints.iter().enumerate().map(candidate).collect();
        hold_back(&mut candidates);
        candidates.into_iter().map(|candidate| (candidate.index, candidate.standing)).collect()
    }

    #[test]
    fn a_failing_endpoint_takes_part_only_when_due() {
        use Standing::{Due, Failing, Sound};
        let endpoints = [Sound, Failing, Due].map(|standing| (standing, Health::Serving));
        assert_eq!(left(&endpoints), [(0, Sound), (2, Due)]);
    }

    #[test]
    fn where_nobody_is_sound_all_take_part() {
        use Standing::{Due, Failing, Sound};
        let endpoints = [Failing, Due].map(|standing| (standing, Health::Serving));
        assert_eq!(left(&endpoints), [(0, Sound), (1, Sound)]);
        let dead = [(Sound, Health::Unreachable), (Failing, Health::Serving)];
        assert_eq!(left(&dead).len(), 2, "one that is not even scraped does not count");
    }

    #[test]
    fn at_most_half_are_held_back() {
        use Standing::{Due, Failing, Sound};
        let serving = |standing| (standing, Health::Serving);
        assert_eq!(left(&[Failing, Failing, Failing, Sound].map(serving)), [(2, Sound), (3, Sound)]);
        assert_eq!(left(&[Failing, Failing, Sound].map(serving)), [(1, Sound), (2, Sound)]);
        assert_eq!(left(&[Due, Failing, Failing, Sound].map(serving)), [(0, Due), (3, Sound)]);
    }

    #[test]
    fn where_no_scrape_succeeds_the_requests_still_tell() {
        let endpoints = [Standing::Sound, Standing::Failing].map(|standing| (standing, Health::Unreachable));
        assert_eq!(left(&endpoints), [(0, Standing::Sound)]);
    }
}
