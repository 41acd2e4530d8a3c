//! A request from its arrival to its last token.

use super::pool::BlockId;
use super::prompt::Prompt;

/// Caller's name for a request; unique among those in the engine.
pub type RequestId = u64;

/// What is asked of an engine.
#[derive(Clone, Debug)]
pub struct Request {
    /// Unique among the requests in the engine.
    pub id: RequestId,
    /// Its hashes must be made with the engine's block size, and a salt per model and adapter.
    pub prompt: Prompt,
    /// Tokens to generate; the engine always generates all of them. At least one.
    pub max_tokens: u32,
    /// LoRA adapter, by the caller's number; `None` is the base model.
    pub adapter: Option<u32>,
}

/// Something that happened at a step's end.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// End of the step, in virtual seconds.
    pub at: f64,
    /// The request it happened to.
    pub id: RequestId,
    /// What happened.
    pub kind: EventKind,
}

/// Kind of an [`Event`].
#[derive(Clone, Debug, PartialEq)]
pub enum EventKind {
    /// The prompt is computed and the first token out. A last token that is also the first gives both events.
    FirstToken {
        /// Prompt tokens taken from the prefix cache.
        cached_tokens: u32,
    },
    /// One more token.
    Token,
    /// The last token is out (it had its own event before) and the blocks are free.
    Finished(Outcome),
    /// Thrown out to make room; it waits at the head of the queue and its tokens are computed anew.
    Preempted,
}

/// A finished request, times in virtual seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Tokens in the prompt.
    pub prompt_tokens: u32,
    /// Of these, taken from the prefix cache when first admitted.
    pub cached_tokens: u32,
    /// Tokens generated.
    pub output_tokens: u32,
    /// Times it was thrown out.
    pub preemptions: u32,
    /// When it was submitted.
    pub arrived: f64,
    /// When it was first admitted.
    pub scheduled: f64,
    /// When its first token was out.
    pub first_token: f64,
    /// When its last token was out.
    pub finished: f64,
}

/// A request inside the engine.
pub(super) struct Sequence {
    pub(super) request: Request,
    pub(super) table: Vec<BlockId>,
    /// Tokens whose KV entries exist.
    pub(super) computed: u32,
    /// Tokens being computed in the step under way.
    pub(super) scheduled: u32,
    pub(super) output: u32,
    /// Blocks of the table that were offered to the prefix cache.
    pub(super) registered: usize,
    /// Free blocks needed at the last try to admit it, and the pool's `shareable` then.
    pub(super) needed: Option<(u32, u64)>,
    pub(super) cached_tokens: u32,
    pub(super) preemptions: u32,
    pub(super) arrived: f64,
    pub(super) admitted: Option<f64>,
    pub(super) first_token: f64,
}

impl Sequence {
    pub(super) fn new(request: Request, now: f64) -> Self {
        Self {
            request,
            table: Vec::new(),
            computed: 0,
            scheduled: 0,
            output: 0,
            registered: 0,
            needed: None,
            cached_tokens: 0,
            preemptions: 0,
            arrived: now,
            admitted: None,
            first_token: now,
        }
    }

    /// Tokens known so far: the prompt and what was generated.
    pub(super) fn tokens(&self) -> u32 {
        self.request.prompt.tokens + self.output
    }

    /// Blocks that may come from the cache: the last token is always computed, since its logits are wanted.
    pub(super) fn cacheable_blocks(&self, block_size: u32) -> usize {
        let blocks = (self.tokens().saturating_sub(1) / block_size) as usize;
        blocks.min(self.request.prompt.hashes.len())
    }

    pub(super) fn outcome(&self, now: f64) -> Outcome {
        Outcome {
            prompt_tokens: self.request.prompt.tokens,
            cached_tokens: self.cached_tokens,
            output_tokens: self.output,
            preemptions: self.preemptions,
            arrived: self.arrived,
            scheduled: self.admitted.unwrap_or(self.arrived),
            first_token: self.first_token,
            finished: now,
        }
    }
}
