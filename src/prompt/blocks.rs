//! The chained hash over blocks of a prompt.
//!
//! `h[i] = XXH3-64(block i, seed = h[i-1])`, so a block's hash stands for everything up to its end and equal hashes mean
//! equal prefixes. The parent goes in as the seed, not as more input: XXH3 derives its secret from the seed, so whoever
//! does not know the deployment's seed cannot prepare blocks that collide. A token counts as 4 bytes.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::json::Text;
use super::opening::{Opener, Opening};
use super::text::MARK;

/// Bytes that stand for a token: the usual rule of thumb for English text and code.
pub const BYTES_PER_TOKEN: usize = 4;

/// The most tokens a prompt is taken for: the longest context an open model claims (Llama 4 Scout). A server refuses what
/// is longer, so it costs no more, whatever a client declares.
pub const MAX_TOKENS: u32 = 10_000_000;

/// Chains kept of a request; the prompts of a batch beyond them only count as tokens. Each chain costs a look-up of its
/// own in the index.
pub const MAX_CHAINS: usize = 256;

/// How prompts are divided into blocks. All who share an index must agree on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// Tokens per block, 1..=65536; other values are moved into that range. Larger blocks need less memory and see less
    /// of a short prompt. Default 64, the least the reference endpoint picker allows.
    pub tokens: u32,
    /// Most blocks hashed per request, over all its chains. Default 2048, which is 131072 tokens at 64.
    pub max: usize,
    /// Random per deployment, so that nobody outside can craft prompts whose hashes collide.
    pub seed: u64,
    /// Also hash the openings of prompts, for which no seed is used.
    pub openings: bool,
}

impl Default for Blocks {
    fn default() -> Self {
        Self { tokens: 64, max: 2048, seed: 0, openings: false }
    }
}

/// The blocks of one prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chain {
    /// A hash for each full block, in order; at least one.
    pub hashes: Vec<u64>,
    /// Estimated tokens, those after the last full block included.
    pub tokens: u32,
}

/// Takes the bytes of prompts and makes chains of them.
pub(super) struct Chainer {
    /// Bytes of a block.
    size: usize,
    /// Blocks that may still be hashed.
    room: usize,
    /// From here on bytes count but are not hashed: what comes is not what would follow in the whole body.
    frozen: bool,
    parent: u64,
    hashes: Vec<u64>,
    /// The start of a block.
    partial: Vec<u8>,
    /// Bytes of the current chain.
    bytes: u64,
    /// Tokens of the finished chains.
    tokens: u64,
    chains: Vec<Chain>,
    /// Of the first chain.
    pub(super) opener: Opener,
}

impl Chainer {
    pub(super) fn new(blocks: &Blocks) -> Self {
        let size = blocks.tokens.clamp(1, 1 << 16) as usize * BYTES_PER_TOKEN;
        Self {
            size,
            room: blocks.max,
            frozen: false,
            parent: 0,
            hashes: Vec::new(),
            partial: Vec::new(),
            bytes: 0,
            tokens: 0,
            chains: Vec::new(),
            opener: Opener::closed(),
        }
    }

    /// Begins a chain. `root` stands for everything that must agree beside the prompt.
    pub(super) fn begin(&mut self, root: u64) {
        self.frozen = self.chains.len() >= MAX_CHAINS;
        self.parent = root;
        self.partial.clear();
        self.bytes = 0;
    }

    /// A chain without a full block could match nothing, and is not kept.
    pub(super) fn end(&mut self) {
        self.opener.close();
        let tokens = self.bytes.div_ceil(BYTES_PER_TOKEN as u64);
        self.tokens = self.tokens.saturating_add(tokens);
        let hashes = std::mem::take(&mut self.hashes);
        if !hashes.is_empty() {
            self.chains.push(Chain { hashes, tokens: saturate(tokens) });
        }
    }

    pub(super) fn finish(self) -> (Vec<Chain>, Option<Opening>, u64) {
        (self.chains, self.opener.finish(), self.tokens)
    }

    /// The rest of the chain only counts.
    pub(super) fn freeze(&mut self) {
        self.frozen = true;
    }

    /// A boundary of the canonical form; no text can contain it.
    pub(super) fn mark(&mut self, tag: u8) {
        self.push(&[MARK, tag]);
    }

    pub(super) fn text(&mut self, text: Text<'_>) {
        text.pieces(|piece| match piece {
            [MARK] => self.push(&[MARK, MARK]),
            [byte] if self.partial.len() + 1 < self.size => self.byte(*byte),
            _ => self.push(piece),
        });
        if text.cut {
            self.freeze();
        }
    }

    /// The same eight bytes over and over, `length` bytes in all. Costs as much as what is hashed of them, however long.
    pub(super) fn repeat(&mut self, unit: [u8; 8], length: usize) {
        let units = [unit; 32];
        let run = units.as_flattened();
        let mut left = length;
        while left > 0 && self.is_hashing() {
            let some = run.get(..left).unwrap_or(run);
            self.push(some);
            left -= some.len();
        }
        self.bytes += left as u64;
    }

    #[inline]
    pub(super) fn push(&mut self, mut bytes: &[u8]) {
        #[cfg(test)]
        PUSHES.set(PUSHES.get() + 1);
        self.bytes += bytes.len() as u64;
        if !self.is_hashing() {
            return;
        }
        while let Some((head, rest)) = bytes.split_at_checked(self.size - self.partial.len()) {
            bytes = rest;
            if self.partial.is_empty() {
                self.block(head);
            } else {
                self.partial.extend_from_slice(head);
                let block = std::mem::take(&mut self.partial);
                self.block(&block);
                self.partial = block;
                self.partial.clear();
            }
            if self.room == 0 {
                return;
            }
        }
        self.partial.extend_from_slice(bytes);
    }

    /// A byte that does not complete a block; most escapes are one.
    #[inline]
    fn byte(&mut self, byte: u8) {
        #[cfg(test)]
        PUSHES.set(PUSHES.get() + 1);
        self.bytes += 1;
        if self.is_hashing() {
            self.partial.push(byte);
        }
    }

    #[inline]
    fn is_hashing(&self) -> bool {
        !self.frozen && self.room > 0
    }

    fn block(&mut self, block: &[u8]) {
        self.parent = xxh3_64_with_seed(block, self.parent);
        self.opener.block(block);
        self.hashes.push(self.parent);
        self.room -= 1;
    }
}

/// At most [`MAX_TOKENS`].
pub(super) fn saturate(tokens: u64) -> u32 {
    u32::try_from(tokens).map_or(MAX_TOKENS, |tokens| tokens.min(MAX_TOKENS))
}

// Work done, which unlike time is the same on every machine.
#[cfg(test)]
std::thread_local! {
    pub(super) static PUSHES: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}
