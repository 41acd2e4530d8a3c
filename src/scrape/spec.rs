//! Which metrics are looked for in a text, arranged so that a line of another is passed over fast.

use super::engine::Engine;
use super::metric_spec::{MetricSpec, Term};
use super::signal::SignalKind;
use super::text::{Label, label, number, split_name};

/// Where a server that is not built in shows each signal. What is `None` stays unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CustomSignals {
    /// Requests queued. Series are summed.
    pub waiting: Option<MetricSpec>,
    /// Requests in the running batch. Series are summed.
    pub running: Option<MetricSpec>,
    /// Share of the KV cache in use, 0..=1. The mean of the series.
    pub kv_usage: Option<MetricSpec>,
    /// Tokens per KV block. The first series.
    pub block_size: Option<MetricSpec>,
    /// KV blocks. Series are summed.
    pub num_blocks: Option<MetricSpec>,
    /// Adapters, in the labels that vLLM has: `max_lora`, `running_lora_adapters`, `waiting_lora_adapters`.
    pub lora: Option<MetricSpec>,
}

/// Which metrics of a text are read, and how they become a [`Reading`](super::Reading).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EngineSpec {
    /// Sorted by name.
    families: Vec<Family>,
    /// Alternatives of one signal in order of preference.
    metrics: Vec<Metric>,
    filter: NameFilter,
}

/// A metric name and who reads it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Family {
    name: Box<[u8]>,
    pub(super) sources: Vec<Source>,
}

/// One term of a metric: some series of a family go to one slot.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Source {
    pub(super) slot: usize,
    pub(super) kind: SignalKind,
    term: Term,
}

/// An alternative for a signal: the sum of its slots.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Metric {
    pub(super) kind: SignalKind,
    pub(super) slots: std::ops::Range<usize>,
}

impl EngineSpec {
    /// The metrics of a known engine.
    pub fn builtin(engine: Engine) -> Self {
        Self::new(engine.metrics().collect())
    }

    /// The metrics of all known engines at once: no two engines share a name, so the text tells which one it is from.
    pub fn auto() -> Self {
        Self::new(Engine::ALL.into_iter().flat_map(Engine::metrics).collect())
    }

    /// Metrics under other names. Names are matched as they stand in the samples, a `_total` included.
    pub fn custom(signals: CustomSignals) -> Self {
        let CustomSignals { waiting, running, kv_usage, block_size, num_blocks, lora } = signals;
        let rows = [
            (SignalKind::Waiting, waiting),
            (SignalKind::Running, running),
            (SignalKind::KvUsage, kv_usage),
            (SignalKind::BlockSize, block_size),
            (SignalKind::NumBlocks, num_blocks),
            (SignalKind::Lora, lora),
        ];
        Self::new(rows.into_iter().filter_map(|(kind, spec)| Some((kind, spec?))).collect())
    }

    fn new(rows: Vec<(SignalKind, MetricSpec)>) -> Self {
        let mut metrics = Vec::new();
        let mut filter = NameFilter::default();
        let mut named: Vec<(Box<[u8]>, Source)> = Vec::new();
        for (kind, row) in rows {
            let first = named.len();
            for term in row.terms() {
                filter.admit(term.name.as_bytes());
                named.push((term.name.as_bytes().into(), Source { slot: named.len(), kind, term: term.clone() }));
            }
            metrics.push(Metric { kind, slots: first..named.len() });
        }
        named.sort_by(|(a, _), (b, _)| a.cmp(b));
        let family = |same: &[(Box<[u8]>, Source)]| {
            let sources = same.iter().map(|(_, source)| source.clone()).collect();
            same.first().map(|(name, _)| Family { name: name.clone(), sources })
        };
        let families = named.chunk_by(|(a, _), (b, _)| a == b).filter_map(family).collect();
        Self { families, metrics, filter }
    }

    pub(super) fn metrics(&self) -> &[Metric] {
        &self.metrics
    }

    /// The slots of all metrics together.
    pub(super) fn slots(&self) -> usize {
        self.metrics.last().map_or(0, |metric| metric.slots.end)
    }

    /// The family that this line is a sample of, and what follows the name.
    pub(super) fn sampled<'a>(&self, line: &'a [u8]) -> Option<(&Family, &'a [u8])> {
        if !self.filter.may_admit(line) {
            return None;
        }
        let (name, rest) = split_name(line)?;
        Some((self.family(name)?, rest))
    }

    /// The family of this name.
    pub(super) fn family(&self, name: &[u8]) -> Option<&Family> {
        let at = self.families.binary_search_by(|family| (*family.name).cmp(name)).ok()?;
        self.families.get(at)
    }
}

impl Source {
    /// Whether this source reads the series with these labels. As in PromQL, `""` matches a label that is not there.
    pub(super) fn matches(&self, labels: &[Label<'_>]) -> bool {
        let matches = |name: &str, value: &str| label(labels, name.as_bytes()).unwrap_or_default() == value.as_bytes();
        self.term.matchers.iter().all(|(name, value)| matches(name, value))
    }

    /// The number that a series with these labels and this value tells.
    pub(super) fn number(&self, labels: &[Label<'_>], value: f64) -> Option<f64> {
        let told = match &self.term.label {
            Some(name) => label(labels, name.as_bytes()).and_then(number)?,
            None => value,
        };
        self.kind.checked(told)
    }
}

/// Passes over most lines by eight bytes from the middle of the name, before its end is looked for. Every known name is
/// long enough and differs there from nearly all metrics that are not wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct NameFilter {
    bits: [u64; 16],
    /// A name is too short to have these bytes, so every line may be wanted.
    open: bool,
}

impl NameFilter {
    const WINDOW: std::ops::Range<usize> = 6..14;

    fn admit(&mut self, name: &[u8]) {
        match Self::place(name) {
            Some((word, bit)) => self.bits.iter_mut().skip(word).take(1).for_each(|bits| *bits |= bit),
            None => self.open = true,
        }
    }

    fn may_admit(&self, line: &[u8]) -> bool {
        let admits = |(word, bit)| self.bits.get::<usize>(word).is_some_and(|bits| bits & bit != 0);
        self.open || Self::place(line).is_some_and(admits)
    }

    fn place(line: &[u8]) -> Option<(usize, u64)> {
        let window = u64::from_le_bytes(line.get(Self::WINDOW)?.try_into().ok()?);
        // Fibonacci hashing: 2^64 over the golden ratio; the ten top bits are the place.
        let hash = window.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Some(((hash >> 60) as usize, 1 << (hash >> 54 & 63)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_known_names_are_long_enough_to_be_told_from_others_by_their_middle() {
        assert!(!EngineSpec::auto().filter.open);
    }

    #[test]
    fn a_name_is_not_confused_with_one_that_it_begins() {
        let spec = EngineSpec::auto();
        assert!(spec.sampled(b"vllm:num_requests_waiting 1").is_some());
        assert!(spec.sampled(b"vllm:num_requests_waiting{").is_some());
        assert!(spec.sampled(b"vllm:num_requests_waiting_by_reason{").is_none());
        assert!(spec.sampled(b"vllm:num_requests_waiting_total 1").is_none());
        assert!(spec.sampled(b"vllm:num_requests_waitin 1").is_none());
        assert!(spec.sampled(b"").is_none());
    }

    #[test]
    fn a_short_name_is_found_too() {
        let queue = CustomSignals { waiting: MetricSpec::parse("q").ok(), ..CustomSignals::default() };
        let spec = EngineSpec::custom(queue);
        assert!(spec.sampled(b"q 1").is_some());
        assert!(spec.sampled(b"queue 1").is_none());
    }
}
