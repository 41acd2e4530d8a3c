//! A prompt as the cache sees it: how many tokens, and one chained hash per full block.
//!
//! The hash of a block covers everything before it, so equal hashes mean equal prefixes. The chain starts from a salt,
//! which keeps models and adapters apart. Hashing once here is what keeps a step cheap however long the prompt is.

use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Token count and block hashes of a prompt, and of the output behind it where that is known beforehand.
#[derive(Clone, Debug)]
pub struct Prompt {
    /// Tokens in the prompt, without any known output.
    pub tokens: u32,
    /// Chained hash per full block.
    pub hashes: Arc<[u64]>,
}

impl Prompt {
    /// A prompt of token ids. `output` are the ids that will be generated, if known: with them a next turn that quotes
    /// this answer finds it in the cache.
    pub fn from_tokens(prompt: &[u32], output: &[u32], block_size: u32, salt: u64) -> Self {
        let block = block_size.max(1) as usize;
        let mut hashes = Vec::with_capacity((prompt.len() + output.len()) / block);
        let mut bytes = Vec::with_capacity(block * 4);
        let mut parent = salt;
        for (count, token) in (1..).zip(prompt.iter().chain(output)) {
            bytes.extend_from_slice(&token.to_le_bytes());
            if count % block == 0 {
                parent = xxh3_64_with_seed(&bytes, parent).max(1);
                hashes.push(parent);
                bytes.clear();
            }
        }
        Self { tokens: prompt.len().try_into().unwrap_or(u32::MAX), hashes: hashes.into() }
    }

    /// A prompt of `tokens` tokens given as ids of coarser blocks, `ids_span` tokens each, as the Mooncake traces have
    /// them (512). Equal leading ids give equal leading engine blocks. `ids_span` should be a multiple of `block_size`.
    pub fn from_block_ids(ids: &[u64], ids_span: u32, tokens: u32, block_size: u32, salt: u64) -> Self {
        let block_size = block_size.max(1);
        let mut parent = salt;
        let hashes = (0..tokens / block_size)
            .map_while(|block| {
                let at = u64::from(block) * u64::from(block_size);
                let id = ids.get(usize::try_from(at / u64::from(ids_span.max(1))).ok()?)?;
                parent = mix(parent ^ mix(*id ^ (at % u64::from(ids_span.max(1))).rotate_left(32))).max(1);
                Some(parent)
            })
            .collect();
        Self { tokens, hashes }
    }

    /// A prompt that shares nothing with any other.
    pub fn unshared(tokens: u32) -> Self {
        Self { tokens, hashes: Arc::new([]) }
    }
}

/// SplitMix64's finalizer: a cheap bijection with full avalanche.
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
