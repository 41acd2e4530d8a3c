//! How prompts are cut and remembered.

use super::Whole;
use serde::Deserialize;

/// The reference endpoint picker assumes 31,250 blocks of 16 tokens in a server that does not say.
const ASSUMED_CACHE_TOKENS: u32 = 31_250 * 16;

/// How prompts are cut and remembered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// Tokens in a block, 16 to 1024.
    pub block_tokens: u32,
    /// Blocks of one prompt that are looked at.
    pub max_blocks: usize,
    /// Blocks that the cache of a server holds which does not tell.
    pub capacity_blocks: u32,
    /// Blocks that are remembered, over all servers.
    pub max_entries: usize,
}

/// How prompts are cut into blocks, and how much is remembered of which server holds which.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(super) struct WrittenPrefix {
    /// Tokens (estimated) in a block. Prompts are compared block by block: smaller blocks find shorter common beginnings
    /// and cost more time and memory.
    block_tokens: Whole<16, 1024>,
    /// How many blocks of a prompt are looked at. What lies beyond them counts as not cached.
    max_blocks: Whole<1, 3072>,
    /// How many blocks, of `block_tokens` each, the cache of one server holds that does not tell its own size,
    /// until its answers show better. The default is as many as make 500,000 tokens: 7812 blocks of 64.
    #[cfg_attr(feature = "schema", schemars(extend("default" = 7812)))]
    capacity_blocks: Option<Whole<1, 16_777_216>>,
    /// About how many blocks are remembered, over all servers and for all workers together. Takes at most 4 KB of shared data
    /// for each 256 of them. The oldest are forgotten first.
    max_entries: Whole<1000, 16_777_216>,
}

impl Default for WrittenPrefix {
    fn default() -> Self {
        Self {
            block_tokens: Whole::of(64),
            max_blocks: Whole::of(2048),
            capacity_blocks: None,
            max_entries: Whole::of(500_000),
        }
    }
}

impl WrittenPrefix {
    pub(super) fn resolve(self) -> Prefix {
        let block_tokens = self.block_tokens.get();
        Prefix {
            block_tokens,
            max_blocks: self.max_blocks.get() as usize,
            capacity_blocks: self.capacity_blocks.map_or(ASSUMED_CACHE_TOKENS / block_tokens, Whole::get),
            max_entries: self.max_entries.get() as usize,
        }
    }
}
