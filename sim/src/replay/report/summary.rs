//! One replay in figures.

use serde::Serialize;

use crate::replay::world::Served;

/// Share of the calls that are not counted, the first to arrive: the caches are still cold.
const WARM_UP: f64 = 0.1;

/// A first token in time, in seconds.
pub const TTFT_GOAL: f64 = 2.0;

/// Tokens in time, in seconds each.
pub const TPOT_GOAL: f64 = 0.05;

/// Means and quantiles over the calls that count. Times in seconds, shares 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// Calls counted.
    pub calls: f64,
    /// Of all calls, those that no engine took.
    pub rejected: f64,
    /// Time to the first token.
    pub ttft_mean: f64,
    /// Half of the calls have it by then.
    pub ttft_p50: f64,
    /// 90 % of them.
    pub ttft_p90: f64,
    /// 99 % of them.
    pub ttft_p99: f64,
    /// Time to the last token.
    pub e2e_mean: f64,
    /// 99 % have it by then.
    pub e2e_p99: f64,
    /// Time per output token after the first, of calls with more than one.
    pub tpot_mean: f64,
    /// 90 % are as fast as this.
    pub tpot_p90: f64,
    /// Share of calls with first token and further tokens in time: [`TTFT_GOAL`] and [`TPOT_GOAL`].
    pub goodput: f64,
    /// Share of prompt tokens taken from a cache.
    pub hit_rate: f64,
    /// Standard deviation of calls per engine over their mean.
    pub imbalance: f64,
    /// Calls of the busiest engine over the mean.
    pub busiest: f64,
    /// Times a request was thrown out of a batch.
    pub preemptions: f64,
    /// Output tokens per second, from the first arrival to the last end.
    pub output_rate: f64,
}

impl Summary {
    /// Sums up what was served by `engines` engines.
    pub fn of(engines: usize, served: &[Served]) -> Self {
        let mut served: Vec<_> = served.iter().collect();
        served.sort_by(|a, b| a.arrived.total_cmp(&b.arrived).then(a.call.cmp(&b.call)));
        let rejected = served.iter().filter(|served| served.outcome.is_none()).count();
        let counted = served.split_off((served.len() as f64 * WARM_UP) as usize);
        let taken = || counted.iter().filter_map(|served| Some((served, served.outcome.as_ref()?)));

        let ttft = Sample::new(taken().map(|(served, _)| served.first_token - served.arrived));
        let e2e = Sample::new(taken().map(|(served, _)| served.finished - served.arrived));
        let tpot = Sample::new(taken().filter_map(|(served, outcome)| interval(served, outcome.output_tokens)));
        let good = taken().filter(|(served, outcome)| {
            served.first_token - served.arrived <= TTFT_GOAL
                && interval(served, outcome.output_tokens).is_none_or(|tpot| tpot <= TPOT_GOAL)
        });
        let prompts: f64 = taken().map(|(_, outcome)| f64::from(outcome.prompt_tokens)).sum();
        let cached: f64 = taken().map(|(_, outcome)| f64::from(outcome.cached_tokens)).sum();
        let output: f64 = taken().map(|(_, outcome)| f64::from(outcome.output_tokens)).sum();
        let begin = counted.iter().map(|served| served.arrived).fold(f64::INFINITY, f64::min);
        let end = counted.iter().map(|served| served.finished).fold(0.0, f64::max);

        let mut per_engine = vec![0.0; engines];
        for (served, _) in taken() {
            if let Some(count) = per_engine.get_mut(served.engine) {
                *count += 1.0;
            }
        }
        let per_engine = Sample::new(per_engine.into_iter());
        Self {
            calls: ttft.count(),
            rejected: rejected as f64,
            ttft_mean: ttft.mean(),
            ttft_p50: ttft.quantile(0.5),
            ttft_p90: ttft.quantile(0.9),
            ttft_p99: ttft.quantile(0.99),
            e2e_mean: e2e.mean(),
            e2e_p99: e2e.quantile(0.99),
            tpot_mean: tpot.mean(),
            tpot_p90: tpot.quantile(0.9),
            goodput: good.count() as f64 / (counted.len().max(1)) as f64,
            hit_rate: cached / prompts.max(1.0),
            imbalance: per_engine.deviation() / per_engine.mean().max(f64::MIN_POSITIVE),
            busiest: per_engine.quantile(1.0) / per_engine.mean().max(f64::MIN_POSITIVE),
            preemptions: taken().map(|(_, outcome)| f64::from(outcome.preemptions)).sum(),
            output_rate: output / (end - begin).max(f64::MIN_POSITIVE),
        }
    }

    /// The mean of each figure over several replays.
    pub fn mean(of: &[Self]) -> Self {
        let count = of.len().max(1) as f64;
        let mean = |figure: fn(&Self) -> f64| of.iter().map(figure).sum::<f64>() / count;
        Self {
            calls: mean(|s| s.calls),
            rejected: mean(|s| s.rejected),
            ttft_mean: mean(|s| s.ttft_mean),
            ttft_p50: mean(|s| s.ttft_p50),
            ttft_p90: mean(|s| s.ttft_p90),
            ttft_p99: mean(|s| s.ttft_p99),
            e2e_mean: mean(|s| s.e2e_mean),
            e2e_p99: mean(|s| s.e2e_p99),
            tpot_mean: mean(|s| s.tpot_mean),
            tpot_p90: mean(|s| s.tpot_p90),
            goodput: mean(|s| s.goodput),
            hit_rate: mean(|s| s.hit_rate),
            imbalance: mean(|s| s.imbalance),
            busiest: mean(|s| s.busiest),
            preemptions: mean(|s| s.preemptions),
            output_rate: mean(|s| s.output_rate),
        }
    }
}

fn interval(served: &Served, output: u32) -> Option<f64> {
    (output > 1).then(|| (served.finished - served.first_token) / f64::from(output - 1))
}

/// Sorted values.
struct Sample(Vec<f64>);

impl Sample {
    fn new(values: impl Iterator<Item = f64>) -> Self {
        let mut values: Vec<_> = values.collect();
        values.sort_by(f64::total_cmp);
        Self(values)
    }

    fn count(&self) -> f64 {
        self.0.len() as f64
    }

    fn mean(&self) -> f64 {
        if self.0.is_empty() { 0.0 } else { self.0.iter().sum::<f64>() / self.count() }
    }

    fn deviation(&self) -> f64 {
        let mean = self.mean();
        (self.0.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / self.count().max(1.0)).sqrt()
    }

    /// The smallest value that at least `share` of them do not exceed.
    fn quantile(&self, share: f64) -> f64 {
        let rank = (share * self.count()).ceil().max(1.0) as usize - 1;
        self.0.get(rank).copied().unwrap_or(0.0)
    }
}
