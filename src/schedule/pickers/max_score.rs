//! `max-score-picker`: the highest total; at random among those within an epsilon of it.
//!
//! Always taking the first of equals would leave all but one server cold in a quiet pool.

use serde::Deserialize;

use super::{Parameters, highest};
use crate::schedule::{Picker, Request, Rng};

/// Totals closer than this are equal: far above rounding, far below what any scorer means.
const EPSILON: f64 = 1e-6;

/// Picks the best.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub struct MaxScore(Parameters);

impl Picker for MaxScore {
    fn most(&self) -> usize {
        self.0.max_num_of_endpoints as usize
    }

    fn pick(&self, _: &Request<'_>, totals: &[f64], rng: &mut Rng) -> Vec<usize> {
        let best = totals.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        // Not a pairwise "almost equal", which would be no order.
        let keys = totals.iter().map(|total| if *total >= best - EPSILON { best } else { *total });
        highest(keys, self.0.max_num_of_endpoints, rng)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::pickers::testing::firsts;

    #[test]
    fn the_highest_total_comes_first_and_the_rest_in_order() {
        let picker = MaxScore(Parameters { max_num_of_endpoints: 2 });
        assert_eq!(picker.pick(&Request::default(), &[10.0, 25.0, 15.0], &mut Rng::new(1)), [1, 2]);
        assert_eq!(MaxScore::default().pick(&Request::default(), &[], &mut Rng::new(1)), [0; 0]);
    }

    #[test]
    fn ties_spread_over_all_the_best() {
        let counts = firsts(&MaxScore::default(), &[50.0, 50.0 - 1e-9, 30.0, 30.0, 10.0], 1000);
        assert!(counts[0] > 400 && counts[1] > 400, "{counts:?}");
        let counts = firsts(&MaxScore::default(), &[1.0; 3], 300);
        assert!(counts.iter().all(|n| (70..=130).contains(n)), "{counts:?}");
    }
}
