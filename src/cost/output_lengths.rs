//! How long answers are, by model: nobody can know, but models and their uses have habits.

use super::recent::Recent;

/// Tokens expected of a model that has not answered yet.
const PRIOR: f64 = 256.0;

/// Weight of a new answer once there are some: half of what is known is of the last 14.
const RATE: f64 = 0.05;

/// Models known at once.
const MAX_MODELS: usize = 1024;

/// Most tokens an answer counts for: one runaway, or a server that lies, must not rule the mean.
const MAX_TOKENS: u32 = 1 << 17;

/// A moving mean of output tokens per model.
#[derive(Debug)]
pub struct OutputLengths {
    models: Recent<Length>,
}

#[derive(Clone, Copy, Debug)]
struct Length {
    mean: f64,
    /// What the next answer weighs. The prior is as good as one answer, and the first ones count fully.
    rate: f64,
}

impl Default for OutputLengths {
    fn default() -> Self {
        Self { models: Recent::new(MAX_MODELS) }
    }
}

impl OutputLengths {
    /// An answer of the model with this hash ended by itself after so many tokens.
    pub fn observe(&mut self, model: u64, output_tokens: u32) {
        let length = self.models.write(model, || Length { mean: PRIOR, rate: 0.5 });
        length.mean += length.rate * (f64::from(output_tokens.min(MAX_TOKENS)) - length.mean);
        // 1/2, 1/3, 1/4 ...: the plain mean, until there are enough.
        length.rate = (length.rate / (1.0 + length.rate)).max(RATE);
    }

    /// Tokens to expect of an answer of this model, at most what the request asks for.
    pub fn expected(&self, model: u64, max_tokens: Option<u32>) -> u32 {
        let mean = self.models.get(model).map_or(PRIOR, |length| length.mean);
        (mean.round() as u32).min(max_tokens.unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_model_is_expected_to_say_256_tokens_and_never_more_than_asked_for() {
        let lengths = OutputLengths::default();
        assert_eq!(lengths.expected(1, None), 256);
        assert_eq!(lengths.expected(1, Some(100)), 100);
        assert_eq!(lengths.expected(1, Some(0)), 0);
    }

    #[test]
    fn the_first_answers_are_averaged_with_the_prior() {
        let mut lengths = OutputLengths::default();
        lengths.observe(1, 1000);
        assert_eq!(lengths.expected(1, None), 628);
        lengths.observe(1, 1000);
        assert_eq!(lengths.expected(1, None), 752);
        assert_eq!(lengths.expected(2, None), 256, "another model");
    }

    #[test]
    fn new_habits_replace_old_ones() {
        let mut lengths = OutputLengths::default();
        (0..1000).for_each(|_| lengths.observe(1, 2000));
        (0..100).for_each(|_| lengths.observe(1, 50));
        assert!((50..70).contains(&lengths.expected(1, None)));
    }

    #[test]
    fn neither_lies_nor_many_names_do_harm() {
        let mut lengths = OutputLengths::default();
        (0..10_000).for_each(|model| lengths.observe(model, u32::MAX));
        assert_eq!(lengths.models.len(), MAX_MODELS);
        assert!(lengths.expected(9_999, None) <= MAX_TOKENS);
    }
}
