//! `preble`: Preble's E2 in the form AIBrix has it.
//!
//! If more than half of the prompt is cached somewhere, the least loaded of those that have the longest match. Else the
//! least loaded of all, where the load is what was sent there in the last three minutes, and the call's own prefill is
//! added. Load is in uncached prompt tokens.

use std::collections::VecDeque;

use rand_pcg::Pcg64;

use super::{Call, Rule, View, cheapest};

/// Seconds.
const WINDOW: f64 = 180.0;

pub(super) struct Preble {
    /// For each engine, when how many tokens were sent to it.
    sent: Vec<VecDeque<(f64, u64)>>,
    loads: Vec<u64>,
}

impl Preble {
    pub(super) fn new(engines: usize) -> Self {
        Self { sent: vec![VecDeque::new(); engines], loads: vec![0; engines] }
    }

    fn forget(&mut self, now: f64) {
        for (sent, load) in self.sent.iter_mut().zip(&mut self.loads) {
            while let Some((_, tokens)) = sent.pop_front_if(|(at, _)| *at < now - WINDOW) {
                *load -= tokens;
            }
        }
    }
}

impl Rule for Preble {
    fn choose(&mut self, call: &Call, view: &View<'_>, random: &mut Pcg64) -> usize {
        self.forget(view.now);
        let longest = view.endpoints.iter().map(|endpoint| endpoint.matched).fold(0.0, f64::max);
        let exploit = longest > 0.5;
        let mut candidates: Vec<_> = view.endpoints.iter().copied().zip(&self.loads).enumerate().collect();
        candidates.retain(|(_, (endpoint, _))| !exploit || endpoint.matched == longest);
        let loads = candidates.iter().map(|(place, (endpoint, load))| {
            let own = if exploit { 0 } else { endpoint.uncached(call) };
            (*place, **load + own)
        });
        let lowest = loads.clone().map(|(_, load)| load).min();
        let best: Vec<_> = loads.filter(|(_, load)| Some(*load) == lowest).map(|(place, _)| place).collect();
        let endpoints = view.endpoints.iter().enumerate().filter(|(place, _)| best.contains(place));
        let chosen = cheapest(endpoints, random, |_| 0.0).unwrap_or(0);
        if let (Some(sent), Some(load), Some(endpoint)) =
            (self.sent.get_mut(chosen), self.loads.get_mut(chosen), view.endpoints.get(chosen))
        {
            let tokens = endpoint.uncached(call);
            sent.push_back((view.now, tokens));
            *load += tokens;
        }
        chosen
    }
}
