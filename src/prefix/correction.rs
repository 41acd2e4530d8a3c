//! How much an endpoint's cache really holds, learned from its answers.
//!
//! The size a server tells, or the one assumed for it, is not what prompts can fill: answers take room too, other gateways
//! have requests there, and some servers tell a size that is not theirs. An answer tells how much of its prompt was in
//! the cache, and so whether one block of a known age was still held: the last one that the index believed in, or, if the
//! engine had more than that, the last one that was ever noted. A [`Correction`] moves the capacity to where these answers
//! change from yes to no:
//!
//! | the block | in steps of 1.1 % |
//! |---|---|
//! | was believed to be held, in the older half of the cache, and was gone | -5 |
//! | was believed to be held, in the older half of the cache, and was there | +1 |
//! | was believed to be gone, and was there | +5 |
//!
//! So the capacity settles where one answer in six is a disappointment. Younger blocks say nothing of it: what is missing
//! there was still being computed by another request, or the cache was emptied. Between 1/64 of the assumed size and the
//! size that the server tells; where it tells none, up to 16 times what was assumed for it, since nothing else could ever
//! show that its cache is larger.
//!
//! Tokens here are estimates, there they are counted, and a text may be denser in its tail than in its head. So what is
//! compared is the share of the prompt, and only a clear difference counts: more than a third of what was believed and a
//! tenth of the prompt. An engine caches whole blocks of its own and never the last token, hence no word of prompts that
//! share less than four blocks.
//!
//! A server whose prefix cache is off finds nothing however young the block is. After 16 such answers, or 80 if it once did
//! find something, it is believed to hold nothing at all, up to the first answer that says otherwise. Servers that do not
//! tell, or tell more than the prompt has, change nothing.
//!
//! The missing blocks stay in the index: the request that missed them has brought them in again. Those that are as old
//! are what the smaller capacity is for.

#[cfg(test)]
mod tests;

use crate::usage::Usage;

/// What a step multiplies the capacity by: 64 are an octave.
const STEP: f64 = 1.010_889_286_05;

const LOST: i16 = -5;
const KEPT: i16 = 1;
const FOUND: i16 = 5;

/// 1/64, in steps.
const LEAST: i16 = -6 * 64;
/// 16 times, in steps.
const MOST: i16 = 4 * 64;

/// Answers without a cached token until a server is believed to cache nothing.
const PATIENCE: i8 = 16;
/// What an answer with some makes good, and how much patience can be had.
const PROOF: i8 = 8;
const MAX_PATIENCE: i8 = 80;

/// Blocks below which nothing is learned.
const FEW: u32 = 4;

/// What the index says of a prompt at the endpoint that it is sent to. Ages are in blocks that the endpoint's clock has
/// come since.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Belief {
    /// Leading blocks it is believed to hold.
    pub held: u32,
    /// Age of the last of them.
    pub age: u32,
    /// Leading blocks it was ever sent, as far as noted.
    pub noted: u32,
    /// Blocks it was assumed to hold in all.
    pub capacity: u32,
    /// Blocks of the whole prompt.
    pub prompt: f32,
    /// Our blocks in one of the engine's, at least 1.
    pub grain: u32,
}

/// What is known of one endpoint's capacity. Two integers: what several workers learned is the sum of what each did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Correction {
    steps: i16,
    patience: i8,
}

impl Default for Correction {
    fn default() -> Self {
        Self { steps: 0, patience: PATIENCE }
    }
}

impl Correction {
    /// The capacity to believe in, in blocks: `assumed`, corrected. `told`: the server says so itself, and cannot hold more.
    pub fn capacity(&self, assumed: u32, told: bool) -> u32 {
        let steps = if told { self.steps.min(0) } else { self.steps };
        match self.patience {
            ..=0 => 0,
            _ if steps == 0 => assumed,
            _ => (f64::from(assumed) * STEP.powi(steps.into())) as u32,
        }
    }

    /// Learns from an answer. True if it had clearly less of its prompt in the cache than was believed.
    pub fn learn(&mut self, belief: &Belief, usage: &Usage) -> bool {
        let (Some(cached), Some(prompt @ 1..)) = (usage.cached_tokens, usage.prompt_tokens) else { return false };
        if cached > prompt {
            return false;
        }
        if cached > 0 {
            self.patience = self.patience.saturating_add(PROOF).min(MAX_PATIENCE);
        }
        let Belief { held, age, noted, capacity, .. } = *belief;
        let few = FEW.saturating_mul(belief.grain);
        let (cached_blocks, believed) = (cached as f32 / prompt as f32 * belief.prompt, held as f32);
        let lacking = believed - cached_blocks;
        if held >= few && lacking > (believed / 3.0).max(belief.prompt / 10.0) {
            self.patience = self.patience.saturating_sub((cached == 0).into()).max(0);
            if age >= capacity / 2 {
                self.step(LOST);
            }
            return true;
        }
        if noted >= held.saturating_add(few) && cached_blocks > (believed + noted as f32) / 2.0 {
            self.step(FOUND);
        } else if held >= few && age >= capacity / 2 && lacking <= 1.0 + believed / 10.0 {
            self.step(KEPT);
        }
        false
    }

    fn step(&mut self, by: i16) {
        self.steps = (self.steps + by).clamp(LEAST, MOST);
    }
}
