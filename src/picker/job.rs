//! What the ledger counts of a request.

use super::asked::Asked;
use crate::cost::{Constants, Work};
use crate::ledger::Job;
use crate::prefix::Cache;
use crate::schedule::Candidate;

/// What the ledger counts of a request at an endpoint with `room` for so many tokens.
pub(super) fn job(asked: &Asked<'_>, chosen: &Candidate<'_>, cache: &Cache, advance: &[u64], room: u32) -> Job {
    let work = within(chosen.work, room);
    let uncached_tokens = work.uncached_tokens();
    let prefill = chosen.speed.prefill * prefill_seconds(&work);
    Job {
        endpoint: cache.endpoint,
        uncached_tokens,
        context_tokens: work.prompt_tokens.saturating_add(asked.output_tokens),
        // What it shares with others is there already.
        kv_tokens: uncached_tokens.saturating_add(asked.output_tokens),
        prefill_micros: if asked.prompt.is_some() { (prefill * 1e6) as u32 } else { 0 },
        blocks: advance.iter().sum(),
        streams: asked.prompt.is_some_and(|prompt| prompt.stream),
    }
}

/// A prompt that does not fit is refused by the server. One that is only declared to be so long may never come at all.
pub(super) fn within(work: Work, room: u32) -> Work {
    let (prompt_tokens, cached_tokens) = (work.prompt_tokens.min(room), work.cached_tokens.min(room));
    Work { prompt_tokens, cached_tokens, ..work }
}

pub(super) fn prefill_seconds(work: &Work) -> f64 {
    Constants::default().prefill_seconds(*work)
}
