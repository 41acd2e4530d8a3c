//! `lmetric`: new prefill tokens times batch size, the lowest wins. No weights, no thresholds.
//!
//! The prefill is the call's own uncached prompt and what is still waiting for its first token; the batch is all that is
//! in flight and the call.

use rand_pcg::Pcg64;

use super::{Call, Rule, View, cheapest};

pub(super) struct Lmetric;

impl Rule for Lmetric {
    fn choose(&mut self, call: &Call, view: &View<'_>, random: &mut Pcg64) -> usize {
        cheapest(view.endpoints.iter().enumerate(), random, |endpoint| {
            (endpoint.pending + endpoint.uncached(call)) as f64 * f64::from(endpoint.requests + 1)
        })
        .unwrap_or(0)
    }
}
