//! Draws that the generators have in common.

use rand_distr::{Distribution, Exp, LogNormal};
use rand_pcg::Pcg64;
use rand_pcg::rand_core::SeedableRng;

pub(super) struct Sampler(pub(super) Pcg64);

impl Sampler {
    pub(super) fn new(seed: u64) -> Self {
        Self(Pcg64::seed_from_u64(seed))
    }

    /// Seconds to the next arrival of a Poisson process; `rate` per second.
    pub(super) fn gap(&mut self, rate: f64) -> f64 {
        Exp::new(rate).map_or(0.0, |gaps| gaps.sample(&mut self.0))
    }

    /// Seconds around `mean`, exponentially distributed.
    pub(super) fn pause(&mut self, mean: f64) -> f64 {
        if mean > 0.0 { self.gap(1.0 / mean) } else { 0.0 }
    }

    /// A length around `mean` with a long tail, as texts of people and models have; at least 1.
    pub(super) fn length(&mut self, mean: f64, sigma: f64) -> u32 {
        let mu = mean.max(1.0).ln() - sigma * sigma / 2.0;
        LogNormal::new(mu, sigma).map_or(1, |lengths| lengths.sample(&mut self.0).round().max(1.0) as u32)
    }
}
