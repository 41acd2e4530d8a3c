//! How fast each engine really is.
//!
//! Prefill: a line `ttft = c + s x` through the observed times to the first token over those of the model, with
//! forgetting. A slope from few points, or from points that lie close together, leans on the fleet's. Decode: the mean
//! ratio of observed to modelled step.

/// Weight of a point after the next one has come.
const FORGETTING: f64 = 0.98;

/// Weight of the newest ratio.
const PACE_DECAY: f64 = 0.03;

/// How far an engine may be from the fleet.
const BOUND: f64 = 3.0;

pub(super) struct Learned {
    /// A book that sees only part of the traffic learns nothing: its waits are too short, and so would be the slopes.
    enabled: bool,
    engines: Vec<Sums>,
    fleet: Sums,
    slopes: Vec<f64>,
    paces: Vec<f64>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    n: f64,
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
}

impl Sums {
    fn add(&mut self, forgetting: f64, x: f64, y: f64) {
        self.n = forgetting * self.n + 1.0;
        self.x = forgetting * self.x + x;
        self.y = forgetting * self.y + y;
        self.xx = forgetting * self.xx + x * x;
        self.xy = forgetting * self.xy + x * y;
    }

    fn variance(&self) -> f64 {
        if self.n > 0.0 { (self.xx / self.n - (self.x / self.n).powi(2)).max(0.0) } else { 0.0 }
    }

    fn covariance(&self) -> f64 {
        if self.n > 0.0 { self.xy / self.n - self.x / self.n * self.y / self.n } else { 0.0 }
    }

    /// The slope, drawn to `prior` with the weight of `0.3 variance max(1, 30 / n)`.
    fn slope(&self, prior: f64, variance: f64) -> f64 {
        let weight = 0.3 * variance * (30.0 / self.n.max(1.0)).max(1.0);
        let all = self.variance() + weight;
        if all > 0.0 { (self.covariance() + weight * prior) / all } else { prior }
    }
}

impl Learned {
    pub(super) fn new(engines: usize, enabled: bool) -> Self {
        Self {
            enabled: enabled && std::env::var_os("NOLEARN").is_none(),
            engines: vec![Sums::default(); engines],
            fleet: Sums::default(),
            slopes: vec![1.0; engines],
            paces: vec![1.0; engines],
        }
    }

    /// What the model's prefill seconds are multiplied by.
    pub(super) fn speed(&self, engine: usize) -> f64 {
        self.slopes.get(engine).copied().unwrap_or(1.0)
    }

    /// What the model's step seconds are multiplied by.
    pub(super) fn pace(&self, engine: usize) -> f64 {
        self.paces.get(engine).copied().unwrap_or(1.0)
    }

    pub(super) fn first_token(&mut self, engine: usize, nominal: f64, observed: f64) {
        let Some(sums) = self.engines.get_mut(engine).filter(|_| self.enabled) else { return };
        sums.add(FORGETTING, nominal, observed);
        // The fleet sees as many more points as it has engines.
        self.fleet.add(FORGETTING.powf(1.0 / self.slopes.len() as f64), nominal, observed);
        let fleet = self.fleet.slope(1.0, self.fleet.variance()).clamp(1.0 / BOUND, BOUND);
        for (slope, sums) in self.slopes.iter_mut().zip(&self.engines) {
            *slope = sums.slope(fleet, self.fleet.variance()).clamp(fleet / BOUND, fleet * BOUND);
        }
    }

    pub(super) fn answer(&mut self, engine: usize, ratio: f64) {
        if let Some(pace) = self.paces.get_mut(engine).filter(|_| self.enabled) {
            *pace += PACE_DECAY * (ratio - *pace);
        }
    }
}
