//! Where a request's session is, among the candidates.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::Candidate;
use crate::fleet::Health;
use crate::session::Home;

/// The place among `candidates` of the one with the session; none if it is not there. One that cannot be reached loses
/// its sessions until it can, unless none can be. Lots are drawn among those that are left, not in the whole pool: the
/// winner of a pool may serve another model, or prefills only.
pub(super) fn place(home: Home, candidates: &[Candidate<'_>]) -> Option<usize> {
    let any = candidates.iter().any(reachable);
    let mut open = candidates.iter().enumerate().filter(|(_, candidate)| !any || reachable(candidate));
    let found = match home {
        Home::Nowhere | Home::Unknown => None,
        Home::At(index) => open.find(|(_, candidate)| candidate.index == index),
        Home::Drawn(number) => open.max_by_key(|(_, c)| xxh3_64_with_seed(c.address.as_bytes(), number)),
    };
    found.map(|(at, _)| at)
}

fn reachable(candidate: &Candidate<'_>) -> bool {
    candidate.health != Health::Unreachable
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates<'a>(addresses: &[&'a str]) -> Vec<Candidate<'a>> {
        let at = |(index, address): (usize, &&'a str)| Candidate { index, ..Candidate::named(address) };
        addresses.iter().enumerate().map(at).collect()
    }

    #[test]
    fn a_session_is_where_its_token_says_if_that_is_among_the_candidates() {
        let mut all = candidates(&["a", "b", "c"]);
        assert_eq!(place(Home::At(2), &all), Some(2));
        all.remove(0);
        assert_eq!(place(Home::At(2), &all), Some(1), "places shift as candidates go");
        assert_eq!(place(Home::At(0), &all), None);
        assert_eq!(place(Home::Nowhere, &all), None);
        assert_eq!(place(Home::Unknown, &all), None);
        assert_eq!(place(Home::At(0), &[]), None);
    }

    #[test]
    fn an_endpoint_that_cannot_be_reached_loses_its_sessions_unless_none_can() {
        let mut all = candidates(&["a", "b"]);
        all[0].health = Health::Unreachable;
        assert_eq!(place(Home::At(0), &all), None);
        assert!((0..100).all(|number| place(Home::Drawn(number), &all) == Some(1)));
        all[1].health = Health::Unreachable;
        assert_eq!(place(Home::At(0), &all), Some(0));
        assert!((0..100).any(|number| place(Home::Drawn(number), &all) == Some(0)));
    }

    #[test]
    fn names_are_spread_and_only_those_of_an_endpoint_that_goes_move() {
        let all = candidates(&["a", "b", "c", "d"]);
        let mut others = all.clone();
        others.remove(1);
        others.reverse();
        let mut counts = [0; 4];
        for number in 0..4000 {
            let before = all[place(Home::Drawn(number), &all).unwrap()].index;
            let after = others[place(Home::Drawn(number), &others).unwrap()].index;
            counts[before] += 1;
            assert!(before == after || before == 1, "whatever the order of the candidates");
        }
        assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
    }
}
