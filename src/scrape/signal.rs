//! The signals: which numbers each may have, and how the series of one server become one.

use super::series::SeriesSet;

/// Rounding may push a share of one past it; anything further is another unit, such as percent, and cannot be told
/// from a share when it is small.
const KV_USAGE_SLACK: f64 = 0.05;

/// What a metric tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum SignalKind {
    Waiting,
    Running,
    KvUsage,
    BlockSize,
    NumBlocks,
    Lora,
}

impl SignalKind {
    /// The number that stands for `value`, or `None` if this signal cannot have it: the server then does not know
    /// itself, and unknown is not zero.
    pub(super) fn checked(self, value: f64) -> Option<f64> {
        let (least, most) = match self {
            Self::Waiting | Self::Running => (0.0, f64::from(u32::MAX)),
            // A cache of no blocks, or of empty ones, is a gauge that was not set yet.
            Self::BlockSize | Self::NumBlocks => (1.0, f64::from(u32::MAX)),
            Self::KvUsage => (0.0, 1.0 + KV_USAGE_SLACK),
            // The time of the last change.
            Self::Lora => (0.0, f64::MAX),
        };
        // No NaN is in a range.
        (least..=most).contains(&value).then(|| if self == Self::KvUsage { value.min(1.0) } else { value })
    }

    /// All data-parallel ranks in one number. `None` without a series.
    pub(super) fn combined(self, series: &SeriesSet) -> Option<f64> {
        match self {
            Self::KvUsage => series.mean(),
            // The ranks have the same.
            Self::BlockSize => series.first(),
            _ => series.sum(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_of_requests_is_unknown() {
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, 4_294_967_296.0] {
            assert_eq!(SignalKind::Waiting.checked(value), None, "{value}");
        }
        assert_eq!(SignalKind::Waiting.checked(0.0), Some(0.0));
        assert_eq!(SignalKind::Waiting.checked(4_294_967_295.0), Some(4_294_967_295.0));
    }

    #[test]
    fn a_share_a_little_above_one_is_one_and_a_percentage_is_unknown() {
        assert_eq!(SignalKind::KvUsage.checked(1.02), Some(1.0));
        assert_eq!(SignalKind::KvUsage.checked(61.0), None);
    }

    #[test]
    fn a_cache_of_no_blocks_is_unknown() {
        assert_eq!(SignalKind::NumBlocks.checked(0.0), None);
        assert_eq!(SignalKind::BlockSize.checked(0.0), None);
    }
}
