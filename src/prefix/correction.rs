//! How much an endpoint's cache really holds, learned from its answers.
//!
//! The size a server tells, or the one assumed for it, is not what prompts can fill: answers take room too, other gateways
//! send requests there, and some tell a size that is not theirs. An answer tells how much of its prompt was in the cache,
//! and so whether one block of a known age was still held: the last one that the index believed in or, if the engine had
//! clearly more than that, the last one that was ever noted. A [`Correction`] moves the capacity to where these answers
//! change from yes to no:
//!
//! | the block | was there | was gone |
//! |---|---|---|
//! | believed to be held, in the older half of the cache | 1 step up | 2 steps down, 6 if it was no older than the half |
//! | believed to be gone | 5 steps up | |
//!
//! 64 steps are an octave. So the capacity settles where about one in four of these answers is a disappointment: to believe
//! a little too much costs less than to forget what is there. Younger blocks say nothing of the capacity: the cache was
//! emptied, or another request was still computing them. It goes down to 1/64 of the assumed size and up to the size that
//! the server tells; where it tells none, up to 16 times the assumed one, for nothing else could show that its cache is
//! larger.
//!
//! Tokens are estimated here and counted there, and a text may be denser in its tail than in its head. So what is compared
//! is the share of the prompt, and only a clear difference counts: a third of what was believed and a tenth of the prompt.
//! An engine caches whole blocks of its own and never the last token, hence nothing is learned from less than four blocks.
//!
//! What was missing is new to the cache, and pushes the others one place further. The clock was moved on as if it had been
//! there, so it is moved on by the rest. Otherwise a cache that is believed to hold all prompts would never be seen to
//! take anything in, and nothing would ever grow old. The missing blocks themselves stay noted: the request that missed
//! them has brought them in. Those that are as old are what the smaller capacity is for.
//!
//! A server whose prefix cache is off finds nothing however young the block is. After 16 such answers, or up to 80 if it
//! found something before, it is believed to hold nothing at all, until an answer says otherwise. Servers that do not tell,
//! or tell more than the prompt has, change nothing.

#[cfg(test)]
mod tests;

use crate::usage::Usage;

/// Steps of an octave.
const OCTAVE: i16 = 64;
/// The 64th root of two.
const STEP: f64 = 1.010_889_286_05;

const LOST: f32 = -2.0;
/// For the whole cache.
const LOST_YOUNG: f32 = -8.0;
const KEPT: i16 = 1;
const FOUND: i16 = 5;

const LEAST: i16 = -6 * OCTAVE;
/// Where the server does not tell its size.
const MOST: i16 = 4 * OCTAVE;

/// Answers without a cached token until a server is believed to cache nothing.
const PATIENCE: i16 = 16;
/// What an answer with some adds to that, and how much it can become.
const PROOF: i16 = 8;
const MAX_PATIENCE: i16 = 80;

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
    /// The server says itself how many it can hold.
    pub told: bool,
    /// Blocks that other requests still had to compute there. What is not much older may be among them.
    pub pending: u32,
    /// Blocks of the whole prompt.
    pub prompt: f32,
    /// Our blocks in one of the engine's, at least 1.
    pub grain: u32,
}

/// What answers say of one endpoint's capacity. Default: nothing. In whole numbers, so that what several workers learned is
/// the sum of what each did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Correction {
    steps: i16,
    /// Beyond [`PATIENCE`].
    patience: i16,
}

impl Correction {
    /// The capacity to believe in, in blocks: `assumed`, corrected. `told`: the server says so itself, and cannot hold more.
    pub fn capacity(&self, assumed: u32, told: bool) -> u32 {
        match self.steps.min(most(told)) {
            _ if self.patience <= -PATIENCE => 0,
            0 => assumed,
            steps => (f64::from(assumed) * STEP.powi(steps.into())) as u32,
        }
    }

    /// Puts what was learned later behind this.
    pub fn then(&mut self, later: &Self) {
        self.steps = self.steps.saturating_add(later.steps).clamp(LEAST, MOST);
        self.patience = self.patience.saturating_add(later.patience).clamp(-PATIENCE, MAX_PATIENCE - PATIENCE);
    }

    /// Learns from an answer, behind what is `known`. If it had clearly less of its prompt in the cache than was believed,
    /// gives how much further that moves the endpoint's clock on, in blocks / 65536.
    pub fn learn(&mut self, known: &Self, belief: &Belief, usage: &Usage) -> Option<u64> {
        let (cached, prompt) = usage.cached_tokens.zip(usage.prompt_tokens)?;
        if cached > prompt || prompt == 0 {
            return None;
        }
        let mut step = |steps: i16, patience: i16| {
            let mut now = *known;
            now.then(self);
            now.then(&Self { steps, patience });
            // The limit keeps it from going up. Were it brought down to the limit, each worker would bring it down as far.
            let room = most(belief.told).saturating_sub(known.steps).max(0);
            self.steps = self.steps.saturating_add(steps).min(room);
            self.patience = now.patience.saturating_sub(known.patience);
        };
        if cached > 0 {
            step(0, PROOF);
        }
        let Belief { held, age, noted, capacity, pending, .. } = *belief;
        let few = FEW.saturating_mul(belief.grain);
        let (cached_blocks, believed) = (cached as f32 / prompt as f32 * belief.prompt, held as f32);
        let (lacking, is_old) = (believed - cached_blocks, age >= capacity / 2);
        if held >= few && lacking > (believed / 3.0).max(belief.prompt / 10.0) {
            if age < pending.saturating_mul(2) {
                return None;
            }
            let short = (1.0 - age as f32 / capacity as f32).max(0.0);
            step(if is_old { (LOST + LOST_YOUNG * short) as i16 } else { 0 }, -i16::from(cached == 0));
            // They counted as used again, but are new.
            return Some((lacking * short * 65536.0) as u64);
        }
        if noted >= held.saturating_add(few) && cached_blocks > (believed + noted as f32) / 2.0 {
            step(FOUND, 0);
        } else if held >= few && is_old && lacking <= 1.0 + believed / 10.0 {
            step(KEPT, 0);
        }
        None
    }

    /// As it lies in shared data.
    pub fn to_bytes(&self) -> [u8; 4] {
        let ([a, b], [c, d]) = (self.steps.to_le_bytes(), self.patience.to_le_bytes());
        [a, b, c, d]
    }

    /// Reads what [`Correction::to_bytes`] wrote.
    pub fn from_bytes([a, b, c, d]: [u8; 4]) -> Self {
        Self { steps: i16::from_le_bytes([a, b]), patience: i16::from_le_bytes([c, d]) }
    }
}

fn most(told: bool) -> i16 {
    if told { 0 } else { MOST }
}
