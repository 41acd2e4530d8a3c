//! Points in time as the proxy tells them.

use std::time::Duration;

/// Milliseconds since the Unix epoch, by the proxy's wall clock. All workers of one proxy share it; it may step back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// How long ago `earlier` was; zero if the clock has stepped back since.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }

    /// This point plus `span`, at most the end of time.
    pub fn plus(self, span: Duration) -> Self {
        let span = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(span))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_steps_back_gives_age_zero() {
        assert_eq!(Timestamp(5).since(Timestamp(9)), Duration::ZERO);
        assert_eq!(Timestamp(9).since(Timestamp(5)), Duration::from_millis(4));
    }

    #[test]
    fn adding_saturates() {
        assert_eq!(Timestamp(u64::MAX).plus(Duration::MAX), Timestamp(u64::MAX));
    }
}
