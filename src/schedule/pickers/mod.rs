//! A file a picker.

mod max_score;
mod random;
mod round_robin;
mod weighted_random;

pub(super) use max_score::MaxScore;
pub(super) use random::Random;
pub(super) use round_robin::RoundRobin;
pub(super) use weighted_random::WeightedRandom;

use serde::Deserialize;

use super::Rng;

/// What every picker takes.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct Parameters {
    /// Endpoints to name, the pick and those to fall back to; at least 1.
    #[serde(deserialize_with = "super::parameters::positive")]
    max_num_of_endpoints: u32,
}

impl Default for Parameters {
    fn default() -> Self {
        Self { max_num_of_endpoints: 1 }
    }
}

/// The places of the `count` highest keys, highest first, equals in random order. A pool is large and `count` small, so
/// nothing is sorted but what is kept.
fn highest(keys: impl ExactSizeIterator<Item = f64>, count: u32, rng: &mut Rng) -> Vec<usize> {
    let mut keyed: Vec<(usize, f64)> = keys.enumerate().collect();
    rng.shuffle(&mut keyed);
    let mut kept: Vec<(usize, f64)> = Vec::new();
    for (index, key) in keyed {
        let place = kept.partition_point(|(_, kept)| kept.total_cmp(&key).is_ge());
        if place < count as usize {
            kept.truncate(count as usize - 1);
            kept.insert(place, (index, key));
        }
    }
    kept.into_iter().map(|(index, _)| index).collect()
}

#[cfg(test)]
mod testing {
    use crate::schedule::{Picker, Request, Rng};

    /// How often each index comes first in `rounds` picks.
    pub(super) fn firsts(picker: &impl Picker, totals: &[f64], rounds: usize) -> Vec<usize> {
        let mut rng = Rng::new(7);
        let mut counts = vec![0; totals.len()];
        for _ in 0..rounds {
            counts[picker.pick(&Request::default(), totals, &mut rng)[0]] += 1;
        }
        counts
    }
}
