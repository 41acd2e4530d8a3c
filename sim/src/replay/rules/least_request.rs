//! `least-request`: fewest requests in flight, by the router's own count.

use rand_pcg::Pcg64;

use super::{Call, Rule, View, cheapest};

pub(super) struct LeastRequest;

impl Rule for LeastRequest {
    fn choose(&mut self, _: &Call, view: &View<'_>, random: &mut Pcg64) -> usize {
        cheapest(view.endpoints.iter().enumerate(), random, |endpoint| f64::from(endpoint.requests)).unwrap_or(0)
    }
}
