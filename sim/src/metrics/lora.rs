//! `vllm:lora_requests_info` and its piling up series.
//!
//! Adapters with requests are told in label values, so each new set of them is a new series. None ever goes away, and
//! the value, the time of its last update, says which one is true now. Both lists hold the same set, running and
//! waiting adapters alike, in first-seen order. Before the first request for an adapter there is no series at all.

use super::text::Text;

/// All series so far.
#[derive(Clone, Debug)]
pub(crate) struct LoraSeries {
    max_loras: usize,
    names: Vec<String>,
    /// Comma-separated adapters and the Unix time of their last update.
    series: Vec<(String, f64)>,
}

impl LoraSeries {
    /// No series yet; `names` by the engine's adapter numbers.
    pub(crate) fn new(max_loras: usize, names: Vec<String>) -> Self {
        Self { max_loras, names, series: Vec::new() }
    }

    /// Notes which adapters have requests at `now`, a step's end in Unix seconds.
    pub(crate) fn update(&mut self, adapters: &[u32], now: f64) {
        if adapters.is_empty() && self.series.is_empty() {
            return;
        }
        let names = adapters.iter().filter_map(|adapter| self.names.get(*adapter as usize));
        let list = names.map(String::as_str).collect::<Vec<_>>().join(",");
        match self.series.iter_mut().find(|(known, _)| *known == list) {
            Some((_, updated)) => *updated = now,
            None => self.series.push((list, now)),
        }
    }

    pub(super) fn write(&self, text: &mut Text) {
        text.family("vllm:lora_requests_info", "gauge", "Running stats on lora requests.");
        let max = self.max_loras.to_string();
        for (list, updated) in &self.series {
            let labels = [("max_lora", &*max), ("running_lora_adapters", list), ("waiting_lora_adapters", list)];
            text.sample("vllm:lora_requests_info", &labels, *updated);
        }
    }
}
