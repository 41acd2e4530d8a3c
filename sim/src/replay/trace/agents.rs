//! Agents that write code: each works through a long context that grows with every step, and asks again when its tool is
//! done.

use super::conversation::{Conversation, unique};
use super::sampling::Sampler;
use super::{Segment, Start, Workload};

/// A closed loop: as many sessions at a time as there are agents; one that has grown long enough is followed by a new
/// one.
#[derive(Clone, Debug)]
pub struct Agents {
    /// Sessions at a time.
    pub agents: usize,
    /// Requests of an agent, over all its sessions.
    pub requests: usize,
    /// Tokens that all sessions begin with: instructions and tools.
    pub system: u32,
    /// Mean tokens of what a session then reads: the code base and the task.
    pub context: f64,
    /// Mean tokens of a tool's result.
    pub result: f64,
    /// Mean tokens of an answer.
    pub output: f64,
    /// Mean seconds that a tool takes.
    pub pause: f64,
    /// Steps of a session.
    pub steps: usize,
}

impl Default for Agents {
    fn default() -> Self {
        Self {
            agents: 60,
            requests: 40,
            system: 8000,
            context: 48_000.0,
            result: 1500.0,
            output: 820.0,
            pause: 1.0,
            steps: 7,
        }
    }
}

impl Agents {
    /// The workload of a seed.
    pub fn generate(&self, seed: u64) -> Workload {
        let mut sampler = Sampler::new(seed);
        let mut calls = Vec::new();
        for agent in 0..self.agents {
            let mut left = self.requests;
            // Not all at once: the fleet would begin with a queue that no steady state has.
            let mut begins = Start::At(agent as f64 * 0.5);
            // Some agents are in the middle of a session when the replay begins.
            let mut steps = 1 + agent % self.steps.max(1);
            while left > 0 {
                let opening = vec![
                    Segment { id: 0, tokens: self.system },
                    Segment { id: unique(calls.len(), 2), tokens: sampler.length(self.context, 0.25) },
                ];
                let mut session = Conversation::new(&mut calls, begins, opening);
                for step in 0..steps.min(left) {
                    if step > 0 {
                        session.say(sampler.length(self.result, 0.8));
                    }
                    let call = session.ask(sampler.length(self.output, 0.6), sampler.pause(self.pause));
                    begins = Start::After { call, pause: sampler.pause(self.pause) };
                }
                left -= steps.min(left);
                steps = self.steps.max(1);
            }
        }
        Workload { calls }
    }
}
