//! `epp-default`: the built-in profile of the Gateway API Inference Extension's endpoint picker.
//!
//! `2 q + 2 k + 3 p`, the highest wins: `q = (max - waiting) / (max - min)` over the endpoints, 1 if all are equal;
//! `k = 1 - kv_usage`; `p` the share of the prompt's blocks that is cached. Queue and cache are as of the last scrape.

use rand_pcg::Pcg64;

use super::{Call, Rule, View, cheapest};

pub(super) struct Blend {
    queue: f64,
    kv_cache: f64,
    prefix: f64,
}

impl Default for Blend {
    fn default() -> Self {
        Self { queue: 2.0, kv_cache: 2.0, prefix: 3.0 }
    }
}

impl Rule for Blend {
    fn choose(&mut self, _: &Call, view: &View<'_>, random: &mut Pcg64) -> usize {
        let waiting = view.endpoints.iter().map(|endpoint| f64::from(endpoint.gauges.waiting));
        let (min, max) = waiting.fold((f64::INFINITY, 0f64), |(min, max), n| (min.min(n), max.max(n)));
        cheapest(view.endpoints.iter().enumerate(), random, |endpoint| {
            let gauges = &endpoint.gauges;
            let queue = if max > min { (max - f64::from(gauges.waiting)) / (max - min) } else { 1.0 };
            -(self.queue * queue + self.kv_cache * (1.0 - gauges.kv_usage) + self.prefix * endpoint.matched)
        })
        .unwrap_or(0)
    }
}
