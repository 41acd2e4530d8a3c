//! `dynamo`: the KV router of NVIDIA Dynamo.
//!
//! `scale * max(0, prefill blocks under way + prompt blocks - cached blocks) + decode blocks`, the lowest wins. Prefill is
//! under way until the first token. Decode blocks are the different blocks of all prompts in flight, this one included.

use std::collections::HashMap;

use rand_pcg::Pcg64;

use super::{Call, Rule, View, cheapest};
use crate::engine::Outcome;
use crate::replay::trace::ROUTER_BLOCK;

pub(super) struct KvRouter {
    prefill_load_scale: f64,
    /// For each engine, how many calls in flight have a block.
    active: Vec<HashMap<u64, u32>>,
    calls: HashMap<usize, (usize, Vec<u64>)>,
}

impl KvRouter {
    pub(super) fn new(prefill_load_scale: f64, engines: usize) -> Self {
        Self { prefill_load_scale, active: vec![HashMap::new(); engines], calls: HashMap::new() }
    }
}

impl Rule for KvRouter {
    fn choose(&mut self, call: &Call, view: &View<'_>, random: &mut Pcg64) -> usize {
        let decode = self.active.iter().map(|active| {
            // Blocks are chained: behind the first that nobody has there is none that somebody has.
            let known = call.hashes().iter().take_while(|hash| active.contains_key(*hash)).count();
            active.len() + call.hashes().len() - known
        });
        let costs = view.endpoints.iter().zip(decode).map(|(endpoint, decode)| {
            let prefill = (endpoint.pending + endpoint.uncached(call)) as f64 / f64::from(ROUTER_BLOCK);
            self.prefill_load_scale * prefill + decode as f64
        });
        let costs: Vec<_> = costs.collect();
        let lowest = costs.iter().copied().fold(f64::INFINITY, f64::min);
        let best = view.endpoints.iter().enumerate().zip(&costs).filter(|(_, cost)| **cost == lowest);
        cheapest(best.map(|(endpoint, _)| endpoint), random, |_| 0.0).unwrap_or(0)
    }

    fn placed(&mut self, id: usize, call: &Call, engine: usize) {
        if let Some(active) = self.active.get_mut(engine) {
            call.hashes().iter().for_each(|hash| *active.entry(*hash).or_default() += 1);
            self.calls.insert(id, (engine, call.hashes().to_vec()));
        }
    }

    fn finished(&mut self, id: usize, _: Option<&Outcome>, _: f64) {
        let Some((engine, hashes)) = self.calls.remove(&id) else { return };
        let Some(active) = self.active.get_mut(engine) else { return };
        for hash in hashes {
            if let Some(count) = active.get_mut(&hash) {
                *count -= 1;
                if *count == 0 {
                    active.remove(&hash);
                }
            }
        }
    }
}
