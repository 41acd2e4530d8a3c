//! What an engine tells about itself.

/// Gauges and counters, as of a step's end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stats {
    /// Requests in the batch.
    pub running: usize,
    /// Requests in the queue.
    pub waiting: usize,
    /// Blocks held by running requests; cached blocks that nobody holds do not count.
    pub kv_blocks_used: u32,
    /// The same as a share of the pool, 0 to 1.
    pub kv_usage: f64,
    /// Adapters loaded.
    pub loras_resident: usize,
    /// Adapters with requests, running or waiting, in first-seen order.
    pub adapters: Vec<u32>,
    /// Totals.
    pub counters: Counters,
}

/// Totals since the start or the last reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Steps run.
    pub steps: u64,
    /// Requests finished.
    pub finished: u64,
    /// Requests thrown out for lack of blocks.
    pub preemptions: u64,
    /// Prompt tokens of requests that got their first token, cached ones included.
    pub prompt_tokens: u64,
    /// Tokens generated.
    pub generation_tokens: u64,
    /// Prompt tokens looked up in the prefix cache at admission.
    pub prefix_queries: u64,
    /// Of these, found.
    pub prefix_hits: u64,
    /// Adapters loaded.
    pub lora_loads: u64,
}
