//! The chained hash over blocks of a prompt.
//!
//! `h[i] = XXH3-64(block i, seed = h[i-1])`, so a block's hash stands for everything up to its end and equal hashes mean
//! equal prefixes. The parent goes in as the seed, not as more input: XXH3 derives its secret from the seed, so whoever
//! does not know the deployment's seed cannot prepare blocks that collide. A token counts as 4 bytes.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::json::Text;
use super::text::MARK;

/// Bytes that stand for a token: the usual rule of thumb for English text and code.
pub const BYTES_PER_TOKEN: usize = 4;

/// How prompts are divided into blocks. All who share an index must agree on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// Tokens per block, 1..=65536; other values are moved into that range. Larger blocks need less memory and see less
    /// of a short prompt. Default 64, the least the reference endpoint picker allows.
    pub tokens: u32,
    /// Most blocks hashed per request, over all its chains; also the most chains. Default 2048, which is 131072 tokens
    /// at 64.
    pub max: usize,
    /// Random per deployment, so that nobody outside can craft prompts whose hashes collide.
    pub seed: u64,
}

impl Default for Blocks {
    fn default() -> Self {
        Self { tokens: 64, max: 2048, seed: 0 }
    }
}

/// The blocks of one prompt; a request that batches several prompts has a chain for each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chain {
    /// A hash for each full block, in order.
    pub hashes: Vec<u64>,
    /// Estimated tokens, those after the last full block included.
    pub tokens: u32,
}

/// Takes the bytes of prompts and makes chains of them.
pub(super) struct Chainer<'b> {
    blocks: &'b Blocks,
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
}

impl<'b> Chainer<'b> {
    pub(super) fn new(blocks: &'b Blocks) -> Self {
        let size = blocks.tokens.clamp(1, 1 << 16) as usize * BYTES_PER_TOKEN;
        Self {
            blocks,
            size,
            room: blocks.max,
            frozen: false,
            parent: 0,
            hashes: Vec::new(),
            partial: Vec::new(),
            bytes: 0,
            tokens: 0,
            chains: Vec::new(),
        }
    }

    /// Begins a chain. `root` stands for everything that must agree beside the prompt.
    pub(super) fn begin(&mut self, root: u64) {
        self.frozen = false;
        self.parent = root;
        self.partial.clear();
        self.bytes = 0;
    }

    pub(super) fn end(&mut self) {
        let tokens = self.bytes.div_ceil(BYTES_PER_TOKEN as u64);
        self.tokens = self.tokens.saturating_add(tokens);
        let hashes = std::mem::take(&mut self.hashes);
        if self.chains.len() < self.blocks.max {
            self.chains.push(Chain { hashes, tokens: saturate(tokens) });
        }
    }

    pub(super) fn finish(self) -> (Vec<Chain>, u64) {
        (self.chains, self.tokens)
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
        text.pieces(|piece| {
            self.push(piece);
            if piece == [MARK] {
                self.push(piece);
            }
        });
        if text.cut {
            self.freeze();
        }
    }

    #[inline]
    pub(super) fn push(&mut self, mut bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        if self.frozen || self.room == 0 {
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

    fn block(&mut self, block: &[u8]) {
        self.parent = xxh3_64_with_seed(block, self.parent);
        self.hashes.push(self.parent);
        self.room -= 1;
    }
}

/// The largest count there is, rather than a wrong one.
pub(super) fn saturate(tokens: u64) -> u32 {
    u32::try_from(tokens).unwrap_or(u32::MAX)
}
