//! Making up a step: who computes how many tokens.

use std::sync::Arc;

use super::pool::BlockPool;
use super::request::Sequence;
use super::{Engine, Work};

impl Engine {
    /// Makes up the step that starts at `now` and gives its end; `None` when there is nothing to do.
    pub(super) fn start_step(&mut self, now: f64) -> Option<f64> {
        for sequence in self.arrivals.drain(..) {
            self.loras.arrive(sequence.request.adapter);
            self.waiting.push_back(sequence);
        }
        if self.waiting.is_empty() && self.running.is_empty() {
            return None;
        }
        self.loras.start_batch();
        let mut step = Step { now, budget: self.config.max_num_batched_tokens, work: Work::default(), loads: 0 };
        self.schedule_running(&mut step);
        // A batch that just lost a request has no room for another.
        if self.preempted.is_empty() {
            self.schedule_waiting(&mut step);
        }
        self.counters.lora_loads += step.loads;
        let load = self.config.lora_load * step.loads as f64;
        Some(now + self.config.step_time.seconds(&step.work) + load)
    }

    fn schedule_running(&mut self, step: &mut Step) {
        let mut at = 0;
        while step.budget > 0 {
            let Some(sequence) = self.running.get_mut(at) else { return };
            let tokens = (sequence.tokens() - sequence.computed).min(step.budget);
            let needed = blocks_for(sequence.computed + tokens, self.config.block_size) as usize;
            let lacking = needed.saturating_sub(sequence.table.len());
            if lacking > self.pool.free() as usize {
                // The newest goes, be it this one.
                self.preempt_newest();
                continue;
            }
            (0..lacking).for_each(|_| sequence.table.extend(self.pool.allocate()));
            step.take(sequence, tokens);
            step.loads += u64::from(self.loras.join(sequence.request.adapter));
            register(sequence, self.config.block_size, &mut self.pool, self.config.enable_prefix_caching);
            at += 1;
        }
    }

    fn preempt_newest(&mut self) {
        let Some(mut sequence) = self.running.pop() else { return };
        self.pool.release(&mut sequence.table);
        sequence.computed = 0;
        sequence.registered = 0;
        sequence.needed = None;
        sequence.preemptions += 1;
        self.counters.preemptions += 1;
        self.preempted.push(sequence.request.id);
        self.waiting.push_front(sequence);
    }

    fn schedule_waiting(&mut self, step: &mut Step) {
        let mut over_loras = Vec::new();
        while step.budget > 0 && self.running.len() < self.config.max_num_seqs {
            let Some(mut sequence) = self.waiting.pop_front() else { break };
            // The one case in which a later request may overtake.
            if !self.loras.admits(sequence.request.adapter) {
                over_loras.push(sequence);
                continue;
            }
            if !self.admit(&mut sequence, step) {
                self.waiting.push_front(sequence);
                break;
            }
            self.running.push(sequence);
        }
        over_loras.into_iter().rev().for_each(|sequence| self.waiting.push_front(sequence));
    }

    /// Takes the blocks for a request's first chunk; false if there are too few.
    fn admit(&mut self, sequence: &mut Sequence, step: &mut Step) -> bool {
        let block_size = self.config.block_size;
        let free = self.pool.free();
        if let Some((needed, shareable)) = sequence.needed
            && u64::from(needed) > u64::from(free) + (self.pool.shareable() - shareable)
        {
            return false;
        }
        let caching = self.config.enable_prefix_caching;
        let hashes = Arc::clone(&sequence.request.prompt.hashes);
        let hashes = hashes.get(..sequence.cacheable_blocks(block_size)).filter(|_| caching).unwrap_or_default();
        let (hits, hits_free) = self.pool.lookup(hashes);
        let cached = hits * block_size;
        let tokens = (sequence.tokens() - cached).min(step.budget);
        let chunk = blocks_for(cached + tokens, block_size) - hits;
        let whole = blocks_for(sequence.tokens(), block_size) - hits;
        let needed = hits_free + if self.config.reserve_full_prompt { whole } else { chunk };
        if needed > free {
            sequence.needed = Some((needed, self.pool.shareable()));
            return false;
        }

        self.pool.share(hashes.get(..hits as usize).unwrap_or_default(), &mut sequence.table);
        (0..chunk).for_each(|_| sequence.table.extend(self.pool.allocate()));
        sequence.computed = cached;
        sequence.registered = hits as usize;
        if sequence.admitted.is_none() {
            sequence.admitted = Some(step.now);
            sequence.cached_tokens = cached;
            self.counters.prefix_queries += u64::from(sequence.tokens());
            self.counters.prefix_hits += u64::from(cached);
        }
        step.take(sequence, tokens);
        step.loads += u64::from(self.loras.join(sequence.request.adapter));
        register(sequence, block_size, &mut self.pool, caching);
        true
    }
}

/// A step in the making.
struct Step {
    now: f64,
    budget: u32,
    work: Work,
    loads: u64,
}

impl Step {
    fn take(&mut self, sequence: &mut Sequence, tokens: u32) {
        let (new, context) = (u64::from(tokens), u64::from(sequence.computed));
        if sequence.output > 0 && tokens == 1 && sequence.computed + 1 == sequence.tokens() {
            self.work.decode_requests += 1;
            self.work.context_tokens += context + 1;
        } else {
            self.work.prefill_tokens += new;
            self.work.attended_pairs += new * context + new * (new + 1) / 2;
        }
        sequence.scheduled = tokens;
        self.budget -= tokens;
    }
}

/// Offers the blocks that are full after this step to the prefix cache: later requests run in later steps, or behind
/// this one in the same step, and may use them.
fn register(sequence: &mut Sequence, block_size: u32, pool: &mut BlockPool, caching: bool) {
    let full = ((sequence.computed + sequence.scheduled) / block_size) as usize;
    if !caching || full <= sequence.registered {
        return;
    }
    let from = sequence.registered;
    let blocks = sequence.table.iter().zip(sequence.request.prompt.hashes.iter());
    blocks.take(full).skip(from).for_each(|(id, hash)| pool.register(*id, *hash));
    sequence.registered = full;
}

fn blocks_for(tokens: u32, block_size: u32) -> u32 {
    tokens.div_ceil(block_size)
}
