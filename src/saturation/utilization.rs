//! `utilization-detector`: by what the servers tell.
//!
//! `max(q / queueDepthThreshold, kv / kvCacheUtilThreshold)`, with `q` the requests queued in the engine and `kv` the share
//! of its KV cache in use, each as long as it is not older than `metricsStalenessThreshold`. A server that tells only one
//! of them is judged by that one. One that tells neither is saturated, or with `stalenessPolicy: ignore` left out. As a
//! filter it leaves servers with `q < queueDepthThreshold * (1 + headroom)` and `kv < kvCacheUtilThreshold * (1 + headroom)`.

use serde::Deserialize;

use super::{Detector, Room, Seen, Staleness};
use crate::clock::Timestamp;
use crate::fleet::fresh;

/// Full when requests queue or the KV cache is nearly used up.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Utilization {
    /// Queued requests at which a server is full; at least 1.
    #[serde(deserialize_with = "crate::parameters::positive")]
    queue_depth_threshold: u32,
    /// Share of the KV cache at which a server is full, above 0 and at most 1.
    #[serde(deserialize_with = "crate::parameters::positive_share")]
    kv_cache_util_threshold: f64,
    /// How old a signal may be.
    metrics_staleness_threshold: Staleness,
    staleness_policy: Policy,
    /// For the filter: by what share of the thresholds a server may be above them, 0..=1.
    #[serde(deserialize_with = "crate::parameters::share")]
    headroom: f64,
}

/// What a server counts of which nothing recent is known.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Policy {
    Saturated,
    Ignore,
}

impl Default for Utilization {
    fn default() -> Self {
        Self {
            queue_depth_threshold: 5,
            kv_cache_util_threshold: 0.8,
            metrics_staleness_threshold: None,
            staleness_policy: Policy::Saturated,
            headroom: 0.0,
        }
    }
}

impl Utilization {
    /// The share that is used of what may be queued, and of what may be stored.
    fn shares(&self, seen: &Seen<'_>, now: Timestamp) -> [Option<f64>; 2] {
        let limit = self.metrics_staleness_threshold.map_or(super::STALENESS, |limit| limit.get());
        let (waiting, used) = (seen.signals.waiting.as_ref(), seen.signals.kv_usage.as_ref());
        [
            fresh(waiting, now, limit).map(|waiting| f64::from(*waiting) / f64::from(self.queue_depth_threshold)),
            fresh(used, now, limit).map(|used| used / self.kv_cache_util_threshold),
        ]
    }
}

impl Detector for Utilization {
    fn room(&self, seen: &Seen<'_>, now: Timestamp) -> Option<Room> {
        let known = self.shares(seen, now).into_iter().flatten();
        known.reduce(f64::max).map(|used| Room { used, whole: 1.0 })
    }

    fn unknown(&self) -> Option<Room> {
        matches!(self.staleness_policy, Policy::Saturated).then_some(Room { used: 1.0, whole: 1.0 })
    }

    fn admits(&self, seen: &Seen<'_>, now: Timestamp) -> bool {
        self.room(seen, now).is_some_and(|room| room.used < 1.0 + self.headroom)
    }

    fn staleness(&mut self) -> Option<&mut Staleness> {
        Some(&mut self.metrics_staleness_threshold)
    }
}
