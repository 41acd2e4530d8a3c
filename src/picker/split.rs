//! A request whose prompt one endpoint reads and whose answer another one generates.
//!
//! The endpoint that generates has the request and its context from the beginning, and nothing to read. The one that reads
//! has the prompt to read, and for that time one more request and the memory it takes; with the first token that is over, and
//! nothing of it is left there but a cached prefix. The prompt's blocks are in both caches from then on.
//!
//! How fast prompts are read is learned from the first tokens of such requests too, of the endpoint that reads. They come
//! later by the time it takes to hand the KV cache over. A fixed part of that is no part of the slope that is learned; the part
//! that grows with the prompt is, and rightly so: whoever has the prompt read there waits for it. What an answer says of
//! cached tokens is not learned: the endpoint that generates counts all that was handed over as cached.

use super::asked::Asked;
use crate::config::Disaggregation;
use crate::fleet::Health;
use crate::ledger::Job;
use crate::schedule::{Candidate, Ranked, Request, Rng};

/// Leaves those that generate in `candidates`. Those that read, of a request that could be split.
pub(super) fn part<'a>(asked: &Asked<'_>, candidates: &mut Vec<Candidate<'a>>) -> Vec<Candidate<'a>> {
    // Of a request without an answer that is generated, such as embeddings, nothing can be handed over.
    let divisible = asked.prompt.is_some() && asked.output_tokens > 0;
    let readers = candidates.iter().filter(|candidate| divisible && candidate.prefills()).copied();
    let readers = readers.map(|mut reader| {
        reader.work.output_tokens = 0;
        reader
    });
    let readers = readers.collect();
    candidates.retain(Candidate::decodes);
    readers
}

/// Who of `readers` reads the prompt for `generator`, if another one shall.
pub(super) fn reader<'a>(
    disaggregation: &Disaggregation,
    request: &Request<'_>,
    generator: &Candidate<'_>,
    mut readers: Vec<Candidate<'a>>,
    rng: &mut Rng,
) -> Option<(Ranked, Candidate<'a>)> {
    // One server can do both, so one that seems dead need not be tried; if all seem so, it is the metrics that fail.
    let is_alive = |candidate: &Candidate<'_>| candidate.health != Health::Unreachable;
    readers.retain(|reader| reader.index != generator.index && (is_alive(reader) || !is_alive(generator)));
    if readers.is_empty() || !disaggregation.decider.splits(&generator.work) {
        return None;
    }
    let chosen = disaggregation.profile.decide(request, &mut readers, rng).ranked.into_iter().next()?;
    let reader = readers.into_iter().find(|reader| reader.index == chosen.index)?;
    Some((chosen, reader))
}

/// What the ledger counts at the one that generates and at the one that reads, made of what it would count if each of them
/// did all.
pub(super) fn jobs(generator: Job, reader: Job) -> (Job, Job) {
    (
        Job { uncached_tokens: 0, prefill_micros: 0, ..generator },
        Job { context_tokens: 0, kv_tokens: reader.uncached_tokens, ..reader },
    )
}
