//! Quantiles, and the middle of repeated measurements.

use std::fmt;

/// The value below which the share `q` of an ascending list lies, by nearest rank; 0 of an empty list.
pub(crate) fn quantile(ascending: &[f64], q: f64) -> f64 {
    let rank = (ascending.len() as f64 * q).ceil() as usize;
    ascending.get(rank.saturating_sub(1)).or(ascending.last()).copied().unwrap_or(0.0)
}

/// Repeated measurements of one thing: what others do on the machine moves the median little.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Middle {
    /// A quarter of the measurements are below.
    pub(crate) lower: f64,
    /// Half of them are below.
    pub(crate) median: f64,
    /// A quarter of them are above.
    pub(crate) upper: f64,
}

impl Middle {
    /// Of these measurements, in any order.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<_> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let at = |q| quantile(&values, q);
        Self { lower: at(0.25), median: at(0.5), upper: at(0.75) }
    }
}

/// Whole numbers: `34 [-2..57]`.
impl fmt::Display for Middle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.0} [{:.0}..{:.0}]", self.median, self.lower, self.upper)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_a_value_of_the_list() {
        let hundred: Vec<_> = (1..=100).map(f64::from).collect();
        assert_eq!([0.0, 0.5, 0.99, 1.0].map(|q| quantile(&hundred, q)), [1.0, 50.0, 99.0, 100.0]);
        assert_eq!(quantile(&[7.0], 0.99), 7.0);
        assert_eq!(quantile(&[], 0.5), 0.0);
    }

    #[test]
    fn one_disturbed_round_does_not_move_the_middle() {
        let quiet = Middle::of([30.0, 31.0, 29.0, 30.0, 32.0]);
        let disturbed = Middle::of([30.0, 31.0, 29.0, 30.0, 5000.0]);
        assert_eq!(quiet.median, disturbed.median);
        assert_eq!(quiet.to_string(), "30 [30..31]");
    }
}
