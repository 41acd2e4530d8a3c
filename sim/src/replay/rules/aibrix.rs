//! `aibrix-prefix-cache`: AIBrix' prefix-cache policy.
//!
//! If the fullest engine has over 8 requests more than the emptiest, the emptiest. Else by match, longest first, the
//! first that has no more requests than mean plus one standard deviation. Else, and for prompts nobody has, the emptiest.

use rand_pcg::Pcg64;

use super::{Call, Rule, View, cheapest};

pub(super) struct PrefixCache {
    max_difference: u32,
    deviations: f64,
}

impl Default for PrefixCache {
    fn default() -> Self {
        Self { max_difference: 8, deviations: 1.0 }
    }
}

impl Rule for PrefixCache {
    fn choose(&mut self, _: &Call, view: &View<'_>, random: &mut Pcg64) -> usize {
        let requests = || view.endpoints.iter().map(|endpoint| endpoint.requests);
        let even =
            requests().max().zip(requests().min()).is_some_and(|(most, least)| most - least <= self.max_difference);
        let count = view.endpoints.len().max(1) as f64;
        let mean = requests().map(f64::from).sum::<f64>() / count;
        let variance = requests().map(|n| (f64::from(n) - mean).powi(2)).sum::<f64>() / count;
        let limit = mean + self.deviations * variance.sqrt();

        let endpoints = || view.endpoints.iter().enumerate();
        let holders = endpoints().filter(|(_, e)| even && e.matched > 0.0 && f64::from(e.requests) <= limit);
        // A million requests outweigh no block of a match.
        cheapest(holders, random, |endpoint| f64::from(endpoint.requests) * 1e-9 - endpoint.matched)
            .or_else(|| cheapest(endpoints(), random, |endpoint| f64::from(endpoint.requests)))
            .unwrap_or(0)
    }
}
