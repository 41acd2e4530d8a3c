//! `sglang-cache-aware`: the cache-aware policy of SGLang's router.
//!
//! If the fullest engine has over 64 requests more than the emptiest and over 1.5 times as many, the emptiest. Else the
//! longest match if it covers over 30 % of the prompt, else the engine whose tree of prefixes is smallest.

use rand_pcg::Pcg64;

use super::{Call, Rule, View, cheapest};

pub(super) struct CacheAware {
    cache_threshold: f64,
    balance_abs_threshold: u32,
    balance_rel_threshold: f64,
    /// Tokens put into the tree of each engine so far.
    trees: Vec<u64>,
}

impl CacheAware {
    pub(super) fn new(engines: usize) -> Self {
        Self { cache_threshold: 0.3, balance_abs_threshold: 64, balance_rel_threshold: 1.5, trees: vec![0; engines] }
    }

    fn decide(&self, view: &View<'_>, random: &mut Pcg64) -> Option<usize> {
        let endpoints = || view.endpoints.iter().enumerate();
        let least = view.endpoints.iter().map(|endpoint| endpoint.requests).min()?;
        let most = view.endpoints.iter().map(|endpoint| endpoint.requests).max()?;
        let uneven = most - least > self.balance_abs_threshold
            && f64::from(most) > self.balance_rel_threshold * f64::from(least);
        if uneven {
            return cheapest(endpoints(), random, |endpoint| f64::from(endpoint.requests));
        }
        let longest = view.endpoints.iter().map(|endpoint| endpoint.matched).fold(0.0, f64::max);
        if longest > self.cache_threshold {
            return cheapest(endpoints(), random, |endpoint| -endpoint.matched);
        }
        let smallest = self.trees.iter().min()?;
        let small = endpoints().zip(&self.trees).filter(|(_, tree)| *tree == smallest).map(|(endpoint, _)| endpoint);
        cheapest(small, random, |_| 0.0)
    }
}

impl Rule for CacheAware {
    fn choose(&mut self, call: &Call, view: &View<'_>, random: &mut Pcg64) -> usize {
        let chosen = self.decide(view, random).unwrap_or(0);
        if let (Some(tree), Some(endpoint)) = (self.trees.get_mut(chosen), view.endpoints.get(chosen)) {
            *tree += endpoint.uncached(call);
        }
        chosen
    }
}
