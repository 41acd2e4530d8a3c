//! A model of a vLLM-like engine, in virtual time: no clock, no I/O, the caller says what time it is.
//!
//! The engine works in steps. A step computes at most `max_num_batched_tokens` tokens: first one (or the next prompt
//! chunk) for each running request, then prompts from the queue, first come first served, cut into chunks. How long it
//! takes follows from what it computes ([`StepTime`]). Results, frees and gauges come at its end, so a long prefill
//! holds back the tokens of all others and hides what arrived meanwhile. KV entries live in a block pool with a prefix
//! cache; when it runs dry, the newest request is thrown out and later computed anew.

mod config;
mod lora;
mod pool;
mod prompt;
mod request;
mod schedule;
mod stats;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

pub use config::{Config, StepTime, Work};
pub use prompt::Prompt;
pub use request::{Event, EventKind, Outcome, Request, RequestId};
pub use stats::{Counters, Stats};

use lora::Loras;
use pool::BlockPool;
use request::Sequence;

/// One engine. Times are virtual seconds from any origin; they must not go backwards.
pub struct Engine {
    config: Config,
    pool: BlockPool,
    loras: Loras,
    /// Came during the step under way; the scheduler has not seen them.
    arrivals: Vec<Sequence>,
    waiting: VecDeque<Sequence>,
    /// In the order of admission.
    running: Vec<Sequence>,
    /// End of the step under way.
    step_end: Option<f64>,
    /// When the next step may start; set while no step is under way and there is work.
    ready: Option<f64>,
    preempted: Vec<RequestId>,
    counters: Counters,
    stats: Stats,
}

/// Why an engine takes no request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejected {
    /// Prompt empty.
    Empty,
    /// Prompt as long as the context or longer.
    TooLong,
    /// An adapter, and `max_loras` is 0.
    LoraDisabled,
}

impl Engine {
    /// An idle engine with an empty cache.
    pub fn new(config: Config) -> Self {
        let config = Config {
            block_size: config.block_size.max(1),
            num_gpu_blocks: config.num_gpu_blocks.max(1),
            max_num_seqs: config.max_num_seqs.max(1),
            max_num_batched_tokens: config.max_num_batched_tokens.max(1),
            ..config
        };
        Self {
            pool: BlockPool::new(config.num_gpu_blocks),
            loras: Loras::new(config.max_loras),
            arrivals: Vec::new(),
            waiting: VecDeque::new(),
            running: Vec::new(),
            step_end: None,
            ready: None,
            preempted: Vec::new(),
            counters: Counters::default(),
            stats: Stats::default(),
            config,
        }
    }

    /// The limits in force.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Takes a request at `now`. It is seen by the scheduler when the next step starts. `max_tokens` is cut to the
    /// context. Errors: see [`Rejected`].
    pub fn submit(&mut self, now: f64, mut request: Request) -> Result<(), Rejected> {
        let room = self.config.context_len().saturating_sub(request.prompt.tokens);
        match request {
            Request { prompt: Prompt { tokens: 0, .. }, .. } => return Err(Rejected::Empty),
            Request { adapter: Some(_), .. } if self.config.max_loras == 0 => return Err(Rejected::LoraDisabled),
            _ if room == 0 => return Err(Rejected::TooLong),
            _ => {}
        }
        // What came before `now` must not find this request in its step.
        if self.step_end.is_none() && self.ready.is_some_and(|ready| ready < now) {
            self.next_step_end();
        }
        request.max_tokens = request.max_tokens.clamp(1, room);
        self.arrivals.push(Sequence::new(request, now));
        if self.step_end.is_none() && self.ready.is_none() {
            self.ready = Some(now);
        }
        Ok(())
    }

    /// Drops a request and frees its blocks; false if it is not here (any more). A step under way keeps its length,
    /// and gauges tell of it at the step's end.
    pub fn abort(&mut self, id: RequestId) -> bool {
        let is = |sequence: &Sequence| sequence.request.id == id;
        let mut sequence = if let Some(at) = self.running.iter().position(is) {
            self.running.remove(at)
        } else if let Some(at) = self.waiting.iter().position(is) {
            let Some(sequence) = self.waiting.remove(at) else { return false };
            sequence
        } else if let Some(at) = self.arrivals.iter().position(is) {
            self.arrivals.remove(at);
            return true;
        } else {
            return false;
        };
        self.pool.release(&mut sequence.table);
        self.loras.leave(sequence.request.adapter);
        if self.step_end.is_none() {
            self.publish();
        }
        true
    }

    /// When the step under way ends, starting one if there is work; `None` when idle. Submissions with equal times are
    /// batched if none asks this in between.
    pub fn next_step_end(&mut self) -> Option<f64> {
        if let (None, Some(ready)) = (self.step_end, self.ready.take()) {
            self.step_end = self.start_step(ready);
        }
        self.step_end
    }

    /// Runs all steps that end up to `now` and appends what happened, in order.
    pub fn advance(&mut self, now: f64, events: &mut Vec<Event>) {
        while let Some(end) = self.next_step_end().filter(|end| *end <= now) {
            self.finish_step(end, events);
        }
    }

    /// Gauges and counters as of the last step's end: what the metrics show.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Requests inside right now, seen by the scheduler or not: what the metrics do not show.
    pub fn in_flight(&self) -> usize {
        self.arrivals.len() + self.waiting.len() + self.running.len()
    }

    /// Empties the prefix cache and zeroes the counters. Requests go on.
    pub fn reset(&mut self) {
        self.pool.forget();
        self.counters = Counters::default();
        self.publish();
    }

    fn finish_step(&mut self, end: f64, events: &mut Vec<Event>) {
        self.step_end = None;
        self.counters.steps += 1;
        events.extend(self.preempted.drain(..).map(|id| Event { at: end, id, kind: EventKind::Preempted }));
        let Self { running, pool, loras, counters, .. } = self;
        running.retain_mut(|sequence| {
            let scheduled = std::mem::take(&mut sequence.scheduled);
            sequence.computed += scheduled;
            if scheduled == 0 || sequence.computed < sequence.tokens() {
                return true;
            }
            sequence.output += 1;
            counters.generation_tokens += 1;
            let id = sequence.request.id;
            let kind = if sequence.output == 1 {
                sequence.first_token = end;
                counters.prompt_tokens += u64::from(sequence.request.prompt.tokens);
                EventKind::FirstToken { cached_tokens: sequence.cached_tokens }
            } else {
                EventKind::Token
            };
            events.push(Event { at: end, id, kind });
            if sequence.output < sequence.request.max_tokens {
                return true;
            }
            pool.release(&mut sequence.table);
            loras.leave(sequence.request.adapter);
            counters.finished += 1;
            events.push(Event { at: end, id, kind: EventKind::Finished(sequence.outcome(end)) });
            false
        });
        if self.in_flight() > 0 {
            self.ready = Some(end);
        }
        self.publish();
    }

    fn publish(&mut self) {
        let stats = &mut self.stats;
        stats.running = self.running.len();
        stats.waiting = self.waiting.len();
        stats.kv_blocks_used = self.pool.used();
        stats.kv_usage = f64::from(self.pool.used()) / f64::from(self.config.num_gpu_blocks);
        stats.loras_resident = self.loras.resident();
        stats.adapters.clear();
        stats.adapters.extend(self.loras.present());
        stats.counters = self.counters;
    }
}
