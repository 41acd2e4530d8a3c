//! People who chat: a system prompt of some application, messages and answers of moderate length, time to read between.

use rand::RngExt;
use rand_distr::{Distribution, Geometric};

use super::conversation::{Conversation, unique};
use super::sampling::Sampler;
use super::{Segment, Start, Workload};

/// Conversations that begin as a Poisson process. Lengths are those of public chat logs: long tails around the means.
#[derive(Clone, Debug)]
pub struct Chat {
    /// Applications, each with its system prompt.
    pub applications: u64,
    /// Tokens of a system prompt.
    pub system: u32,
    /// Mean tokens of a message.
    pub message: f64,
    /// Mean tokens of an answer.
    pub output: f64,
    /// Mean turns of a conversation.
    pub turns: f64,
    /// Mean seconds between an answer and the next message.
    pub pause: f64,
    /// Conversations that begin per second.
    pub rate: f64,
    /// Conversations in all.
    pub conversations: usize,
}

impl Default for Chat {
    fn default() -> Self {
        Self {
            applications: 12,
            system: 1500,
            message: 450.0,
            output: 310.0,
            turns: 3.0,
            pause: 20.0,
            rate: 8.0,
            conversations: 4000,
        }
    }
}

impl Chat {
    /// The workload of a seed.
    pub fn generate(&self, seed: u64) -> Workload {
        let mut sampler = Sampler::new(seed);
        let mut calls = Vec::new();
        let mut now = 0.0;
        for _ in 0..self.conversations {
            now += sampler.gap(self.rate);
            let application = sampler.0.random_range(0..self.applications.max(1));
            let opening = vec![
                Segment { id: application, tokens: self.system },
                Segment { id: unique(calls.len(), 2), tokens: sampler.length(self.message, 1.0) },
            ];
            let further = Geometric::new(1.0 / self.turns.max(1.0)).map_or(0, |turns| turns.sample(&mut sampler.0));
            let mut chat = Conversation::new(&mut calls, Start::At(now), opening);
            chat.ask(sampler.length(self.output, 0.7), 0.0);
            for _ in 0..further {
                chat.say(sampler.length(self.message, 1.0));
                chat.ask(sampler.length(self.output, 0.7), sampler.pause(self.pause));
            }
        }
        Workload { calls }
    }
}
