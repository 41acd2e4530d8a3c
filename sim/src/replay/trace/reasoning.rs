//! Reasoning: short prompts that come again and again, long answers. Memory and decoding are what is scarce, and a rule
//! that sees only prompts sees nothing.

use rand::RngExt;

use super::sampling::Sampler;
use super::{Call, Segment, Start, Workload};

/// A closed loop of clients, each asking again as soon as it is answered.
#[derive(Clone, Debug)]
pub struct Reasoning {
    /// Clients.
    pub clients: usize,
    /// Requests of a client.
    pub requests: usize,
    /// Different prompts.
    pub prompts: u64,
    /// Tokens of a prompt.
    pub prompt: u32,
    /// Mean tokens of an answer.
    pub output: f64,
    /// How unlike answers are: the standard deviation of the logarithm of their length.
    pub spread: f64,
}

impl Default for Reasoning {
    fn default() -> Self {
        Self { clients: 300, requests: 8, prompts: 30, prompt: 1000, output: 7500.0, spread: 0.7 }
    }
}

impl Reasoning {
    /// The workload of a seed.
    pub fn generate(&self, seed: u64) -> Workload {
        let mut sampler = Sampler::new(seed);
        let mut calls: Vec<Call> = Vec::new();
        for client in 0..self.clients {
            let mut start = Start::At(client as f64 * 0.01);
            for _ in 0..self.requests {
                let prompt = Segment { id: sampler.0.random_range(0..self.prompts.max(1)), tokens: self.prompt };
                let output = sampler.length(self.output, self.spread);
                calls.push(Call::new(start, &[prompt], 1, output, None));
                start = Start::After { call: calls.len() - 1, pause: 0.0 };
            }
        }
        Workload { calls }
    }
}
