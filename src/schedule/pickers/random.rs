//! `random-picker`: any candidate, whatever its score.

use serde::Deserialize;

use super::Parameters;
use crate::schedule::{Picker, Request, Rng};

/// Picks at random.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub struct Random(Parameters);

impl Picker for Random {
    fn most(&self) -> usize {
        self.0.max_num_of_endpoints as usize
    }

    fn pick(&self, _: &Request<'_>, totals: &[f64], rng: &mut Rng) -> Vec<usize> {
        let mut order: Vec<usize> = (0..totals.len()).collect();
        rng.shuffle(&mut order);
        order.truncate(self.0.max_num_of_endpoints as usize);
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::pickers::testing::firsts;

    #[test]
    fn scores_make_no_difference() {
        let counts = firsts(&Random::default(), &[0.0, 5.0, 100.0], 3000);
        assert!(counts.iter().all(|n| (900..=1100).contains(n)), "{counts:?}");
    }
}
