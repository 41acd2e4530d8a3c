//! What a request asks for, as far as it matters to where it goes.

use xxhash_rust::xxh3::xxh3_64;

use crate::learned::Learner;
use crate::prompt::{Chain, Prompt};
use crate::subset::Subset;

use super::Ask;

/// A request. Default: one without a body to look at.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Asked<'a> {
    pub(super) prompt: Option<&'a Prompt>,
    /// The only endpoints that may be picked; `None`: all.
    pub(super) subset: Option<&'a Subset>,
    /// The adapter, or else the model.
    pub(super) model: Option<&'a [u8]>,
    /// Of that name, as far as it could be read.
    pub(super) model_hash: u64,
    pub(super) chains: &'a [Chain],
    /// Full blocks of these.
    pub(super) blocks: u32,
    /// Tokens of the prompt.
    pub(super) tokens: u32,
    /// Tokens expected of the answer.
    pub(super) output_tokens: u32,
}

impl<'a> Asked<'a> {
    pub(super) fn of(ask: Ask<'a>, learner: &Learner) -> Self {
        let Ask { prompt, subset, .. } = ask;
        let Some(prompt) = prompt else { return Self { subset, model_hash: xxh3_64(&[]), ..Self::default() } };
        let model = prompt.adapter.as_deref().or(prompt.model.as_deref());
        let model_hash = xxh3_64(model.unwrap_or_default());
        Self {
            prompt: Some(prompt),
            subset,
            model,
            model_hash,
            chains: &prompt.chains,
            blocks: u32::try_from(prompt.blocks()).unwrap_or(u32::MAX),
            tokens: prompt.tokens,
            output_tokens: learner.expected_output(model_hash, prompt.max_output_tokens),
        }
    }
}
