//! Servers that the tests of detectors, and of detectors as filters, look at.

use crate::clock::Timestamp;
use crate::fleet::Signals;
use crate::scrape::Reading;

pub(crate) const NOW: Timestamp = Timestamp(1_796_000_000_000);

/// A server that told its queue and the share of its KV cache in use so many milliseconds ago.
pub(crate) fn told(waiting: u32, kv_usage: f64, ago: u64) -> Signals {
    let mut signals = Signals::default();
    let reading = Reading { waiting: Some(waiting), kv_usage: Some(kv_usage), ..Reading::default() };
    signals.update(reading, Timestamp(NOW.0 - ago));
    signals
}
