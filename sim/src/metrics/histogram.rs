//! Histograms in vLLM's buckets.

use crate::engine::Outcome;

/// Counts per bucket.
#[derive(Clone, Debug)]
pub(crate) struct Histogram {
    bounds: &'static [f64],
    /// One more than bounds: the last is beyond all of them.
    counts: Vec<u64>,
    sum: f64,
}

impl Histogram {
    pub(super) fn new(bounds: &'static [f64]) -> Self {
        Self { bounds, counts: vec![0; bounds.len() + 1], sum: 0.0 }
    }

    fn observe(&mut self, value: f64) {
        let bucket = self.bounds.partition_point(|bound| *bound < value);
        self.counts.iter_mut().skip(bucket).take(1).for_each(|count| *count += 1);
        self.sum += value;
    }

    pub(super) fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    pub(super) fn sum(&self) -> f64 {
        self.sum
    }

    /// Upper bounds, +Inf last, and the number of observations at or below.
    pub(super) fn cumulative(&self) -> impl Iterator<Item = (f64, u64)> {
        let bounds = self.bounds.iter().copied().chain([f64::INFINITY]);
        bounds.zip(self.counts.iter().scan(0, |total, count| {
            *total += count;
            Some(*total)
        }))
    }
}

/// What is observed of finished requests, times in wall seconds.
#[derive(Clone, Debug)]
pub(crate) struct Histograms {
    pub(super) prompt_tokens: Histogram,
    pub(super) computed_tokens: Histogram,
    pub(super) generation_tokens: Histogram,
    pub(super) preemptions: Histogram,
    pub(super) ttft: Histogram,
    /// SGLang's buckets.
    pub(super) ttft_coarse: Histogram,
    pub(super) per_output_token: Histogram,
    pub(super) e2e: Histogram,
    pub(super) queue: Histogram,
    pub(super) inference: Histogram,
    pub(super) prefill: Histogram,
    pub(super) decode: Histogram,
}

impl Default for Histograms {
    fn default() -> Self {
        let latency = || Histogram::new(LATENCY);
        Self {
            prompt_tokens: Histogram::new(TOKENS),
            computed_tokens: Histogram::new(TOKENS),
            generation_tokens: Histogram::new(TOKENS),
            preemptions: Histogram::new(PREEMPTIONS),
            ttft: Histogram::new(TTFT),
            ttft_coarse: Histogram::new(TTFT_COARSE),
            per_output_token: Histogram::new(PER_TOKEN),
            e2e: latency(),
            queue: latency(),
            inference: latency(),
            prefill: latency(),
            decode: latency(),
        }
    }
}

impl Histograms {
    pub(crate) fn record(&mut self, outcome: &Outcome, speedup: f64) {
        let Outcome { arrived, scheduled, first_token, finished, .. } = *outcome;
        let ttft = (first_token - arrived) / speedup;
        self.prompt_tokens.observe(f64::from(outcome.prompt_tokens));
        self.computed_tokens.observe(f64::from(outcome.prompt_tokens - outcome.cached_tokens));
        self.generation_tokens.observe(f64::from(outcome.output_tokens));
        self.preemptions.observe(f64::from(outcome.preemptions));
        self.ttft.observe(ttft);
        self.ttft_coarse.observe(ttft);
        self.e2e.observe((finished - arrived) / speedup);
        self.queue.observe((scheduled - arrived) / speedup);
        self.inference.observe((finished - scheduled) / speedup);
        self.prefill.observe((first_token - scheduled) / speedup);
        self.decode.observe((finished - first_token) / speedup);
        if outcome.output_tokens > 1 {
            self.per_output_token.observe((finished - first_token) / speedup / f64::from(outcome.output_tokens - 1));
        }
    }
}

pub(super) const TOKENS: &[f64] = &[
    1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0, 10_000.0, 20_000.0, 50_000.0,
    100_000.0,
];
pub(super) const STEP_TOKENS: &[f64] =
    &[1.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0, 8192.0, 16_384.0];
pub(super) const FEW: &[f64] = &[1.0, 2.0, 5.0, 10.0, 20.0];
const PREEMPTIONS: &[f64] = &[1.0, 2.0, 3.0, 4.0, 5.0, 10.0, 20.0];
const TTFT: &[f64] = &[
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0,
    160.0, 640.0, 2560.0,
];
const TTFT_COARSE: &[f64] =
    &[0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 20.0, 40.0, 60.0, 80.0, 100.0, 200.0, 400.0];
pub(super) const PER_TOKEN: &[f64] =
    &[0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0];
const LATENCY: &[f64] = &[
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0, 480.0, 960.0,
    1920.0, 7680.0,
];
pub(super) const BLOCK_LIFE: &[f64] = &[
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0,
    1200.0, 1800.0,
];
pub(super) const HTTP_FINE: &[f64] = &[
    0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 7.5, 10.0, 30.0, 60.0,
];
pub(super) const HTTP_COARSE: &[f64] = &[0.1, 0.5, 1.0];
