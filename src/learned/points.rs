//! A line through points.

use super::fading::Fading;

/// Weight of what a slope is drawn to, in variances.
const SHRINKAGE: f64 = 0.3;

/// Points below which that weighs more.
const FEW: f64 = 30.0;

/// The sums of a linear regression: n, x, y, xx, xy.
pub(super) type Points = Fading<5>;

impl Points {
    /// A point; those before keep this share of their weight.
    pub(super) fn point(&mut self, keep: f64, x: f64, y: f64) {
        self.add(keep, [1.0, x, y, x * x, x * y]);
    }

    /// The slope of y over x among all endpoints. Begins at 1.
    pub(super) fn fleet_slope(&self) -> f64 {
        self.slope(1.0, SHRINKAGE * self.variance() * self.scarcity())
    }

    /// The slope among those of one endpoint, drawn to that of the fleet, the more the fewer they are and the less they
    /// differ in comparison with the fleet's `variance`.
    pub(super) fn endpoint_slope(&self, fleet: f64, variance: f64) -> f64 {
        self.slope(fleet, SHRINKAGE * variance * self.scarcity().max(1.0))
    }

    /// The slope of y over x, drawn to `target` with this weight; `target` where nothing else is known.
    fn slope(&self, target: f64, weight: f64) -> f64 {
        let weighed = self.variance() + weight;
        let slope = (self.covariance() + weight * target) / weighed;
        if weighed > 0.0 && slope.is_finite() { slope } else { target }
    }

    fn scarcity(&self) -> f64 {
        let [n, ..] = self.sums;
        FEW / n.max(1.0)
    }

    /// Of x.
    pub(super) fn variance(&self) -> f64 {
        let [n, x, _, xx, _] = self.sums;
        if n <= 0.0 {
            return 0.0;
        }
        let mean = x / n;
        let variance = xx / n - mean * mean;
        // What rounding leaves of equal numbers.
        if variance > 1e-9 * mean * mean { variance } else { 0.0 }
    }

    fn covariance(&self) -> f64 {
        let [n, x, y, _, xy] = self.sums;
        if self.variance() == 0.0 { 0.0 } else { xy / n - x / n * (y / n) }
    }
}
