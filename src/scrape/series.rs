//! The series of one metric, kept so that nothing is counted twice.
//!
//! One server may show a metric many times. Data-parallel ranks are parts of a whole and are combined. Ranks of tensor,
//! pipeline and expert parallelism work on the same requests and show the same number: they count once. A scheduler with
//! priorities may show a total (`priority=""`) beside its parts: the total counts if there is one. A series without a
//! usable value is kept as unknown, for a sum without it would be too small.

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::text::Label;

/// Series of one metric that are kept; more are counted as cut. 64 data-parallel ranks with four priorities each.
pub(super) const MAX_SERIES: usize = 256;

/// Ranks that repeat a number instead of adding to it.
const REPLICA_LABELS: [&[u8]; 3] = [b"tp_rank", b"pp_rank", b"moe_ep_rank"];

/// Which series, by its labels in any order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    /// All labels but the replica's and the priority.
    group: u64,
    /// The priority if it is a part; none for a total.
    part: Option<u64>,
}

impl Identity {
    pub(super) fn of(labels: &[Label<'_>]) -> Self {
        let mut identity = Self { group: 0, part: None };
        for Label { name, value } in labels {
            if *name == b"priority" {
                identity.part = (!value.is_empty()).then(|| xxh3_64(value));
            } else if !REPLICA_LABELS.contains(name) {
                identity.group = identity.group.wrapping_add(xxh3_64_with_seed(value, xxh3_64(name)));
            }
        }
        identity
    }
}

#[derive(Clone, Copy, Debug)]
struct Series {
    identity: Identity,
    /// `None`: unknown.
    value: Option<f64>,
}

/// The series of one metric.
#[derive(Clone, Debug, Default)]
pub(super) struct SeriesSet(Vec<Series>);

impl SeriesSet {
    /// False if there are too many.
    pub(super) fn add(&mut self, identity: Identity, value: Option<f64>) -> bool {
        if let Some(replica) = self.0.iter_mut().find(|series| series.identity == identity) {
            // Replicas are set one after the other; the greatest does not depend on the order of the lines. Values are
            // finite; `None` is below all of them, so one replica that knows is enough.
            if replica.value < value {
                replica.value = value;
            }
        } else if self.0.len() < MAX_SERIES {
            self.0.push(Series { identity, value });
        } else {
            return false;
        }
        true
    }

    pub(super) fn sum(&self) -> Option<f64> {
        self.values().next()?;
        self.values().sum()
    }

    pub(super) fn mean(&self) -> Option<f64> {
        Some(self.sum()? / self.values().count() as f64)
    }

    /// The first that is known.
    pub(super) fn first(&self) -> Option<f64> {
        self.values().flatten().next()
    }

    /// Totals, and parts that have no total.
    fn values(&self) -> impl Iterator<Item = Option<f64>> {
        let is_total_of = |total: &Series, group| total.identity == Identity { group, part: None };
        let counts = move |series: &&Series| {
            let Identity { group, part } = series.identity;
            part.is_none() || !self.0.iter().any(|total| is_total_of(total, group))
        };
        self.0.iter().filter(counts).map(|series| series.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(series: &[(&[(&str, &str)], f64)]) -> SeriesSet {
        let mut set = SeriesSet::default();
        for (labels, value) in series {
            let labels = labels.iter().map(|(name, value)| Label { name: name.as_bytes(), value: value.as_bytes() });
            let value = (!value.is_nan()).then_some(*value);
            assert!(set.add(Identity::of(&labels.collect::<Vec<_>>()), value));
        }
        set
    }

    #[test]
    fn ranks_of_one_server_are_combined() {
        let set = set(&[(&[("dp_rank", "0")], 7.0), (&[("dp_rank", "1")], 1.0)]);
        assert_eq!((set.sum(), set.mean(), set.first()), (Some(8.0), Some(4.0), Some(7.0)));
    }

    #[test]
    fn nothing_is_not_zero() {
        let set = set(&[]);
        assert_eq!((set.sum(), set.mean(), set.first()), (None, None, None));
    }

    #[test]
    fn replicas_of_a_rank_count_once() {
        let set = set(&[
            (&[("dp_rank", "0"), ("tp_rank", "0")], 7.0),
            (&[("tp_rank", "1"), ("dp_rank", "0")], 8.0),
            (&[("dp_rank", "1"), ("tp_rank", "2"), ("pp_rank", "1"), ("moe_ep_rank", "3")], 2.0),
        ]);
        assert_eq!(set.sum(), Some(10.0));
    }

    #[test]
    fn a_total_replaces_its_parts_and_no_others() {
        let set = set(&[
            (&[("dp_rank", "0"), ("priority", "0")], 3.0),
            (&[("dp_rank", "0"), ("priority", "")], 5.0),
            (&[("dp_rank", "0"), ("priority", "10")], 2.0),
            (&[("dp_rank", "1"), ("priority", "0")], 4.0),
            (&[("dp_rank", "1"), ("priority", "10")], 4.0),
        ]);
        assert_eq!(set.sum(), Some(13.0));
    }

    #[test]
    fn a_rank_that_does_not_know_makes_the_sum_unknown() {
        let set = set(&[(&[("dp_rank", "0")], f64::NAN), (&[("dp_rank", "1")], 0.0)]);
        assert_eq!((set.sum(), set.mean(), set.first()), (None, None, Some(0.0)));
    }

    #[test]
    fn what_a_replica_or_the_total_knows_is_known() {
        let replicas = set(&[(&[("tp_rank", "0")], f64::NAN), (&[("tp_rank", "1")], 3.0)]);
        assert_eq!(replicas.sum(), Some(3.0));
        let total = set(&[(&[("priority", "")], 3.0), (&[("priority", "1")], f64::NAN)]);
        assert_eq!(total.sum(), Some(3.0));
    }

    #[test]
    fn too_many_series_are_told() {
        let mut set = SeriesSet::default();
        let kept = (0..1_000).filter(|&group| set.add(Identity { group, part: None }, Some(1.0))).count();
        assert_eq!((kept, set.sum()), (MAX_SERIES, Some(MAX_SERIES as f64)));
    }
}
