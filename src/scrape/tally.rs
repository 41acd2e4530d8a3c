//! What was found in a text so far.

use super::lora::NewestSet;
use super::series::{Identity, SeriesSet};
use super::signal::SignalKind;
use super::spec::{EngineSpec, Family};
use super::text::Label;
use super::{Cut, Lora, Reading};

/// One slot per term of the spec.
pub(super) struct Tally<'a, 's> {
    spec: &'s EngineSpec,
    slots: Vec<Slot<'a>>,
    cut: Cut,
}

/// The series of one term: numbers, or adapters.
#[derive(Clone, Default)]
struct Slot<'a> {
    series: SeriesSet,
    adapters: NewestSet<'a>,
    /// A line that may belong here could not be read.
    spoiled: bool,
}

impl<'a, 's> Tally<'a, 's> {
    pub(super) fn new(spec: &'s EngineSpec) -> Self {
        Self { spec, slots: vec![Slot::default(); spec.slots()], cut: Cut::default() }
    }

    /// Takes in a sample of `family`.
    pub(super) fn add(&mut self, family: &Family, labels: &[Label<'a>], value: f64) {
        let identity = Identity::of(labels);
        for source in family.sources.iter().filter(|source| source.matches(labels)) {
            let Some(slot) = self.slots.get_mut(source.slot) else { continue };
            let kept = match (source.kind, source.number(labels, value)) {
                (SignalKind::Lora, Some(value)) => slot.adapters.add(labels, value),
                (SignalKind::Lora, None) => true,
                (_, value) => slot.series.add(identity, value),
            };
            self.cut.series = self.cut.series.saturating_add(u32::from(!kept));
        }
    }

    /// Notes a sample of `family` whose labels could not be read.
    pub(super) fn spoil(&mut self, family: &Family) {
        for source in &family.sources {
            self.slots.get_mut(source.slot).into_iter().for_each(|slot| slot.spoiled = true);
        }
    }

    pub(super) fn finish(mut self) -> (Reading, Cut) {
        let count = |kind| self.number(kind).and_then(whole);
        let reading = Reading {
            waiting: count(SignalKind::Waiting),
            running: count(SignalKind::Running),
            kv_usage: self.number(SignalKind::KvUsage).map(|share| share.min(1.0)),
            block_size: count(SignalKind::BlockSize),
            num_blocks: count(SignalKind::NumBlocks),
            lora: None,
        };
        let lora = self.adapters();
        self.cut.adapters = lora.as_ref().map_or(0, |(_, cut)| *cut);
        (Reading { lora: lora.map(|(lora, _)| lora), ..reading }, self.cut)
    }

    /// The first alternative that is known, with all its terms.
    fn number(&self, kind: SignalKind) -> Option<f64> {
        let term = |slot: &Slot<'_>| if slot.spoiled { None } else { kind.combined(&slot.series) };
        self.alternatives(kind).find_map(|slots| slots.iter().map(term).sum())
    }

    fn adapters(&self) -> Option<(Lora, u32)> {
        self.alternatives(SignalKind::Lora).flatten().find_map(|slot| slot.adapters.union())
    }

    fn alternatives(&self, kind: SignalKind) -> impl Iterator<Item = &[Slot<'a>]> {
        let metrics = self.spec.metrics().iter().filter(move |metric| metric.kind == kind);
        metrics.filter_map(|metric| self.slots.get(metric.slots.clone()))
    }
}

/// Nearest whole number; more than a `u32` holds is unknown.
fn whole(number: f64) -> Option<u32> {
    let number = number.round();
    (number <= f64::from(u32::MAX)).then_some(number as u32)
}
