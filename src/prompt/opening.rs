//! What of a prompt two gateways can agree by that have no secret in common.
//!
//! Block hashes hold the deployment's secret, so another gateway has others for the same prompt. The opening is hashed
//! without it. A client can choose its own opening, and gains nothing: it could send the same prompt over and over.

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// What counts as the beginning of an opening: most system prompts fit, or differ in it.
const BEGINNING_TOKENS: u32 = 2048;

/// Hashes of how a prompt begins, in full blocks and without a secret: equal openings have equal ones everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    /// Of the first 2048 tokens, fewer if the opening has fewer.
    pub beginning: u64,
    /// Of all up to the end of the user's first message; all turns of a conversation have it in common. Of a text that
    /// is no conversation, the same as `beginning`.
    pub whole: u64,
}

/// Takes the blocks of a prompt until its opening ends.
pub(super) struct Opener {
    /// Blocks of the beginning.
    beginning: usize,
    key: u64,
    blocks: usize,
    head: u64,
    /// The opening ends after this many blocks.
    end: usize,
}

impl Opener {
    pub(super) fn closed() -> Self {
        Self { beginning: 0, key: 0, blocks: 0, head: 0, end: 0 }
    }

    /// One for blocks of `tokens`. `root` stands for everything that must agree beside the prompt.
    pub(super) fn new(tokens: u32, root: u64) -> Self {
        let beginning = (BEGINNING_TOKENS / tokens.max(1)).max(1) as usize;
        Self { beginning, key: root, blocks: 0, head: root, end: usize::MAX }
    }

    pub(super) fn block(&mut self, block: &[u8]) {
        if self.blocks < self.end {
            self.key = xxh3_64_with_seed(block, self.key);
            self.blocks += 1;
            if self.blocks <= self.beginning {
                self.head = self.key;
            }
        }
    }

    /// The opening ends here, but not before its first block does.
    pub(super) fn end(&mut self) {
        self.end = self.end.min(self.blocks.max(1));
    }

    /// It ends with its beginning.
    pub(super) fn end_with_beginning(&mut self) {
        self.end = self.end.min(self.beginning);
    }

    /// What follows is not to be looked at.
    pub(super) fn close(&mut self) {
        self.end = self.end.min(self.blocks);
    }

    /// `None` if it does not fill a block.
    pub(super) fn finish(self) -> Option<Opening> {
        (self.blocks > 0).then_some(Opening { beginning: self.head, whole: self.key })
    }
}
