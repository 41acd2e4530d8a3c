//! `weighted-random-picker`: at random in proportion to the total.
//!
//! Efraimidis and Spirakis' A-Res: each candidate draws `u^(1/total)` and the largest keys win, which samples without
//! replacement. Compared as logarithms, so that small totals do not underflow. Where no total is above zero, any
//! candidate is as good.

use serde::Deserialize;

use super::{Parameters, highest};
use crate::schedule::{Picker, Request, Rng};

/// Picks in proportion to the score.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub struct WeightedRandom(Parameters);

impl Picker for WeightedRandom {
    fn most(&self) -> usize {
        self.0.max_num_of_endpoints as usize
    }

    fn pick(&self, _: &Request<'_>, totals: &[f64], rng: &mut Rng) -> Vec<usize> {
        let mut draw = |total: &f64| if *total > 0.0 { rng.unit().ln() / total } else { f64::NEG_INFINITY };
        let keys: Vec<f64> = totals.iter().map(&mut draw).collect();
        highest(keys.into_iter(), self.0.max_num_of_endpoints, rng)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::pickers::testing::firsts;

    #[test]
    fn picks_are_in_proportion_to_totals() {
        for totals in [&[10.0, 90.0][..], &[1.0; 3], &[30.0, 0.0], &[100.0, 90.0, 50.0, 30.0, 20.0]] {
            let counts = firsts(&WeightedRandom::default(), totals, 10_000);
            let sum: f64 = totals.iter().sum();
            for (count, total) in counts.iter().zip(totals) {
                let (got, wanted) = (*count as f64 / 1e4, total / sum);
                assert!((got - wanted).abs() < 0.02, "{totals:?}: {counts:?}");
            }
        }
    }

    #[test]
    fn with_no_total_above_zero_all_take_part() {
        let counts = firsts(&WeightedRandom::default(), &[0.0, 0.0], 1000);
        assert!(counts.iter().all(|n| *n > 400), "{counts:?}");
    }
}
