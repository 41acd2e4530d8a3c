//! `prefix-based-pd-decider`: a prompt is read elsewhere if enough of it is not cached where the answer is generated.
//!
//! `prompt tokens >= promptTokens` and `prompt tokens - cached tokens >= nonCachedTokens`. Handing a KV cache over takes
//! time; for a short rest of a prompt that is longer than reading it. Formula and defaults: llm-d's endpoint picker, where a
//! `nonCachedTokens` of 0 stands for never too.

use serde::Deserialize;

use crate::cost::Work;
use crate::schedule::Decider;

/// Splits requests that bring much to read.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct PrefixBased {
    /// Tokens; 0: never.
    #[serde(deserialize_with = "super::super::parameters::whole")]
    non_cached_tokens: u32,
    /// Tokens.
    #[serde(deserialize_with = "super::super::parameters::whole")]
    prompt_tokens: u32,
}

impl Decider for PrefixBased {
    fn splits(&self, work: &Work) -> bool {
        self.non_cached_tokens > 0
            && work.prompt_tokens >= self.prompt_tokens
            && work.uncached_tokens() >= self.non_cached_tokens
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn decides([non_cached_tokens, prompt_tokens]: [u32; 2], [prompt, cached]: [u32; 2], splits: bool) {
        let work = Work { prompt_tokens: prompt, cached_tokens: cached, ..Work::default() };
        assert_eq!(PrefixBased { non_cached_tokens, prompt_tokens }.splits(&work), splits);
    }

    #[test]
    fn what_is_not_cached_decides() {
        decides([512, 0], [4096, 240 * 16], false);
        decides([512, 0], [4096, 4096 - 512], true);
        decides([512, 0], [4096, 4096 - 511], false);
        decides([256, 0], [4096, 240 * 16], true);
        decides([512, 0], [4096, 0], true);
        decides([16, 0], [15, 0], false);
    }

    #[test]
    fn a_short_prompt_is_not_worth_it() {
        decides([16, 1000], [999, 0], false);
        decides([16, 1000], [1000, 0], true);
        decides([16, 1000], [1000, 990], false);
    }

    #[test]
    fn a_threshold_of_0_stands_for_never() {
        decides([0, 0], [u32::MAX, 0], false);
    }

    #[test]
    fn more_cached_than_there_is_is_all() {
        decides([1, 0], [100, 4096], false);
    }
}
