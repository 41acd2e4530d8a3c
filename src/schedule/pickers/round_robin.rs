//! `round-robin-picker`: one candidate after the other, whatever their totals.
//!
//! Each worker counts its own turns, from a random number: workers that all began with the first endpoint would send it
//! as many requests at once as there are workers. Those to fall back to are the ones whose turn comes next.

use serde::Deserialize;

use super::Parameters;
use crate::schedule::{Picker, Request, Rng};

/// Picks in turn.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub struct RoundRobin(Parameters);

impl Picker for RoundRobin {
    fn most(&self) -> usize {
        self.0.max_num_of_endpoints as usize
    }

    fn pick(&self, request: &Request<'_>, totals: &[f64], _: &mut Rng) -> Vec<usize> {
        let first = request.turn.checked_rem(totals.len() as u64).unwrap_or(0) as usize;
        let order = (first..totals.len()).chain(0..first);
        order.take(self.0.max_num_of_endpoints as usize).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_candidate_has_its_turn_whatever_its_total() {
        let picker = RoundRobin(Parameters { max_num_of_endpoints: 2 });
        let picks = (u64::MAX - 3..=u64::MAX).map(|turn| {
            let request = Request { turn, ..Request::default() };
            picker.pick(&request, &[0.0, 5.0, 100.0], &mut Rng::new(1))
        });
        assert_eq!(picks.collect::<Vec<_>>(), [[0, 1], [1, 2], [2, 0], [0, 1]]);
        assert_eq!(picker.pick(&Request::default(), &[], &mut Rng::new(1)), [0; 0]);
    }
}
