//! `utilization-detector` and `concurrency-detector` as filters: not the endpoints that are full.
//!
//! If all are full, all are kept: somebody must wait, and the scorers know where it is shortest. A pool of one endpoint
//! never loses it.

use crate::saturation::{Detector, Seen, Staleness};
use crate::schedule::{Candidate, Filter, Request, Rng};

/// Removes endpoints that have no room for one more.
pub struct NotFull(pub Box<dyn Detector>);

impl Filter for NotFull {
    fn filter(&self, request: &Request<'_>, candidates: &mut Vec<Candidate<'_>>, _: &mut Rng) {
        let admits = |candidate: &Candidate<'_>| {
            let Candidate { health, signals, in_flight: requests, in_flight_tokens: tokens, .. } = *candidate;
            self.0.admits(&Seen { health, signals, requests, tokens }, request.now)
        };
        if candidates.iter().any(admits) {
            candidates.retain(admits);
        }
    }

    fn staleness(&mut self) -> Option<&mut Staleness> {
        self.0.staleness()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::fleet::Signals;
    use crate::saturation::testing::{NOW, told};
    use crate::schedule::registry::FILTERS;

    /// The places of those that stay, of servers that told this and have so many requests and tokens in flight.
    fn kept(name: &str, parameters: Value, servers: &[(Signals, u32, u32)]) -> Vec<usize> {
        let candidates = servers.iter().enumerate();
        let mut candidates = candidates
            .map(|(index, (signals, in_flight, in_flight_tokens))| Candidate {
                index,
                signals,
                in_flight: *in_flight,
                in_flight_tokens: *in_flight_tokens,
                ..Candidate::named("10.0.0.1:8000")
            })
            .collect();
        let plugin = FILTERS.iter().find(|plugin| plugin.name == name).unwrap();
        let request = Request { now: NOW, ..Request::default() };
        plugin.build(parameters).unwrap().filter(&request, &mut candidates, &mut Rng::new(1));
        candidates.iter().map(|candidate| candidate.index).collect()
    }

    #[track_caller]
    fn utilization_keeps(servers: &[Signals], expected: &[usize]) {
        let parameters = json!({ "headroom": 0.2 });
        let servers: Vec<_> = servers.iter().map(|signals| (signals.clone(), 0, 0)).collect();
        assert_eq!(kept("utilization-detector", parameters, &servers), expected);
    }

    #[test]
    fn utilization_leaves_out_what_is_beyond_the_headroom_or_stale() {
        let [good, above] = [told(0, 0.1, 0), told(5, 0.95, 0)];
        let [queue, cache, stale] = [told(7, 0.1, 0), told(0, 0.97, 0), told(0, 0.1, 201)];
        utilization_keeps(&[good.clone(), queue.clone(), above, cache.clone()], &[0, 2]);
        utilization_keeps(&[stale.clone(), good], &[1]);
        utilization_keeps(&[stale.clone(), stale], &[0, 1]);
        utilization_keeps(&[queue, cache], &[0, 1]);
    }

    #[test]
    fn concurrency_leaves_out_what_has_no_room_for_one_more() {
        let servers = |in_flight: &[(u32, u32)]| -> Vec<_> {
            in_flight.iter().map(|&(requests, tokens)| (Signals::default(), requests, tokens)).collect()
        };
        let limits = |mode, headroom| json!({ "maxConcurrency": 10, "maxTokenConcurrency": 1000, "mode": mode, "headroom": headroom });
        let list = servers(&[(9, 1000), (10, 999), (11, 0), (12, 0)]);
        let keeps = |parameters| kept("concurrency-detector", parameters, &list);
        assert_eq!(keeps(limits("requests", 0.0)), [0]);
        assert_eq!(keeps(limits("requests", 0.2)), [0, 1, 2]);
        assert_eq!(keeps(limits("tokens", 0.0)), [1, 2, 3]);
        assert_eq!(keeps(limits("hybrid", 0.0)), [0, 1, 2, 3], "all are full in one way or the other");
    }

    #[test]
    fn a_pool_of_one_never_loses_its_server() {
        utilization_keeps(&[told(0, 0.1, 60_000)], &[0]);
        utilization_keeps(&[told(100, 1.0, 0)], &[0]);
    }
}
