//! Many customers, each with a long system prompt of its own: the shared-prefix workload of llm-d's benchmarks.

use rand::RngExt;

use super::sampling::Sampler;
use super::{Call, Segment, Start, Workload};

/// Groups of prompts with a system prompt in common, asked for at random, arriving as a Poisson process.
#[derive(Clone, Debug)]
pub struct SharedPrefix {
    /// System prompts.
    pub groups: u64,
    /// Questions asked, again and again, behind each.
    pub prompts: u64,
    /// Tokens of a system prompt.
    pub system: u32,
    /// Tokens of a question.
    pub question: u32,
    /// Tokens of an answer.
    pub output: u32,
    /// Requests per second.
    pub rate: f64,
    /// Requests in all.
    pub requests: usize,
}

impl Default for SharedPrefix {
    fn default() -> Self {
        Self { groups: 150, prompts: 5, system: 6000, question: 1200, output: 1000, rate: 11.0, requests: 5000 }
    }
}

impl SharedPrefix {
    /// The workload of a seed.
    pub fn generate(&self, seed: u64) -> Workload {
        let mut sampler = Sampler::new(seed);
        let mut now = 0.0;
        let calls = (0..self.requests).map(|_| {
            now += sampler.gap(self.rate);
            let group = sampler.0.random_range(0..self.groups.max(1));
            let prompt = sampler.0.random_range(0..self.prompts.max(1));
            let segments = [
                Segment { id: group, tokens: self.system },
                Segment { id: self.groups + group * self.prompts + prompt, tokens: self.question },
            ];
            Call::new(Start::At(now), &segments, 2, self.output, None)
        });
        Workload { calls: calls.collect() }
    }
}
