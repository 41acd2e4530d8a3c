//! How little the picker must cost, as a share of what a picker service costs in the same run.

use super::measure::{Case, Size};

/// The largest ratio of the picker's added latency or CPU time to that of the external processor.
pub(super) fn of(case: Case) -> f64 {
    match (case.concurrency, case.size) {
        (1, Size::Get) => 1.0 / 8.0,
        (1, Size::Post4) => 1.0 / 6.0,
        _ => 1.0 / 4.0,
    }
}
