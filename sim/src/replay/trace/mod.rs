//! What clients ask for: recorded traces and generators.
//!
//! A [`Workload`] is a list of [`Call`]s. Each starts at a time of its own (open loop) or when another call has ended
//! (closed loop, and the turns of a conversation). Nothing in it depends on how it is served, so that all rules are
//! given the same work.

mod agents;
mod azure;
mod chat;
mod conversation;
mod file;
mod mooncake;
mod reasoning;
mod sampling;
mod shared_prefix;
#[cfg(test)]
mod tests;
mod text;

use std::sync::Arc;

use endpoint_picker::prompt::{self, Chain, Opening};
use rand::RngExt;
use rand_pcg::Pcg64;
use rand_pcg::rand_core::SeedableRng;

use crate::engine;

pub use agents::Agents;
pub use chat::Chat;
pub use file::{TraceError, load};
pub use reasoning::Reasoning;
pub use shared_prefix::SharedPrefix;
pub use text::Segment;

/// Tokens of an engine's KV block, vLLM's default.
pub const ENGINE_BLOCK: u32 = 16;

/// Tokens of a block as routers see prompts, the default of the picker.
pub const ROUTER_BLOCK: u32 = 64;

/// Blocks in the beginning of an opening, 2,048 tokens.
const BEGINNING: usize = 32;

/// A list of calls.
#[derive(Clone, Debug, Default)]
pub struct Workload {
    /// In no particular order; a call is known by its place.
    pub calls: Vec<Call>,
}

/// One request.
#[derive(Clone, Debug)]
pub struct Call {
    /// When it is made.
    pub start: Start,
    /// Tokens that will be generated. No router is told.
    pub output: u32,
    /// The prompt as the engine sees it.
    pub engine: engine::Prompt,
    /// The prompt as a router sees it.
    pub prompt: Arc<prompt::Prompt>,
}

/// When a call is made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Start {
    /// At this time, in seconds.
    At(f64),
    /// When another call has ended.
    After {
        /// Its place in the list.
        call: usize,
        /// Seconds between.
        pause: f64,
    },
}

impl Workload {
    /// The same work, arriving `factor` times as fast. Pauses of people and tools stay as they are.
    pub fn sped_up(mut self, factor: f64) -> Self {
        for call in &mut self.calls {
            if let Start::At(time) = &mut call.start {
                *time /= factor;
            }
        }
        self
    }

    /// The same work with arrivals spread over the trace's clock tick, at random by `seed`. The Mooncake conversations are
    /// recorded every 3 s, a dozen at a time; taken literally that is a herd that no client ever sent.
    pub fn spread(mut self, seed: u64) -> Self {
        let times = self.calls.iter().filter_map(|call| match call.start {
            Start::At(time) => Some(time),
            Start::After { .. } => None,
        });
        let mut times: Vec<_> = times.collect();
        times.sort_by(f64::total_cmp);
        let gaps = times.windows(2).filter_map(|pair| pair.first().zip(pair.last()).map(|(a, b)| b - a));
        let tick = gaps.filter(|gap| *gap > 0.0).min_by(f64::total_cmp).unwrap_or(0.0);
        let mut random = Pcg64::seed_from_u64(seed);
        for call in &mut self.calls {
            if let Start::At(time) = &mut call.start {
                *time += tick * random.random::<f64>();
            }
        }
        self
    }

    /// Mean prompt and output tokens.
    pub fn mean_tokens(&self) -> (f64, f64) {
        let count = self.calls.len().max(1) as f64;
        let sum = |tokens: fn(&Call) -> u32| self.calls.iter().map(|call| f64::from(tokens(call))).sum::<f64>();
        (sum(|call| call.engine.tokens) / count, sum(|call| call.output) / count)
    }
}

impl Call {
    /// A call whose prompt is `segments`, the first `opening` of which end with the first user message. If `answer` is
    /// given it is what will be generated: a later prompt that quotes it finds it in the engine's cache.
    pub fn new(start: Start, segments: &[Segment], opening: usize, output: u32, answer: Option<u64>) -> Self {
        let tokens = Segment::total(segments);
        let router = text::block_hashes(segments, ROUTER_BLOCK);
        let opening = Segment::total(segments.get(..opening).unwrap_or(segments)) / ROUTER_BLOCK;
        let whole: Vec<_> = segments.iter().copied().chain(answer.map(|id| Segment { id, tokens: output })).collect();
        Self {
            start,
            output,
            engine: engine::Prompt { tokens, hashes: text::block_hashes(&whole, ENGINE_BLOCK).into() },
            prompt: Arc::new(prompt::Prompt {
                opening: self::opening(&router, opening as usize),
                chains: vec![Chain { hashes: router, tokens }],
                tokens,
                stream: true,
                ..prompt::Prompt::default()
            }),
        }
    }

    /// The hashes of the prompt's blocks, as a router sees them.
    pub fn hashes(&self) -> &[u64] {
        self.prompt.chains.first().map_or(&[], |chain| &chain.hashes)
    }
}

/// Hashes of the first `blocks` blocks, at least one. Those of traces hold no secret, so they do for openings too.
fn opening(hashes: &[u64], blocks: usize) -> Option<Opening> {
    let whole = blocks.clamp(1, hashes.len().max(1));
    let last = |blocks: usize| hashes.get(blocks - 1).copied();
    Some(Opening { beginning: last(whole.min(BEGINNING))?, whole: last(whole)? })
}
