//! A file a picker.

mod max_score;
mod random;
mod weighted_random;

pub(super) use max_score::MaxScore;
pub(super) use random::Random;
pub(super) use weighted_random::WeightedRandom;

#[cfg(test)]
mod testing {
    use crate::schedule::{Picker, Rng};

    /// How often each index comes first in `rounds` picks.
    pub(super) fn firsts(picker: &impl Picker, totals: &[f64], rounds: usize) -> Vec<usize> {
        let mut rng = Rng::new(7);
        let mut counts = vec![0; totals.len()];
        for _ in 0..rounds {
            counts[picker.pick(totals, &mut rng)[0]] += 1;
        }
        counts
    }
}
