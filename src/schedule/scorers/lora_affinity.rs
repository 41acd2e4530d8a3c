//! `lora-affinity-scorer`: the adapter is there 1.0; there is room for it 0.8; it waits there 0.6; else 0.
//!
//! In this order, so an adapter that waits at a server with room scores 0.8. Servers that tell nothing of adapters are
//! not judged, and a request without a model name judges nobody.

use crate::schedule::{Candidate, Request, Scorer};

/// Prefers endpoints that serve the request's adapter.
#[derive(Debug)]
pub struct LoraAffinity;

impl Scorer for LoraAffinity {
    fn score(&self, request: &Request<'_>, candidates: &[Candidate<'_>], scores: &mut [Option<f64>]) {
        let Some(model) = request.model else { return };
        for (score, candidate) in scores.iter_mut().zip(candidates) {
            *score = candidate.lora.map(|lora| match () {
                () if lora.runs(model) => 1.0,
                () if lora.has_room() => 0.8,
                () if lora.holds(model) => 0.6,
                () => 0.0,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::scorers::testing::scores;
    use crate::scrape::Lora;

    fn lora(max: u32, running: &[&str], waiting: &[&str]) -> Lora {
        let names = |list: &[&str]| list.iter().map(|name| name.as_bytes().into()).collect();
        Lora { max, running: names(running), waiting: names(waiting) }
    }

    #[test]
    fn running_then_room_then_waiting_then_nothing() {
        let servers = [
            lora(2, &["sql"], &[]),
            lora(2, &["other"], &[]),
            lora(4, &["other"], &["sql"]),
            lora(2, &["other"], &["sql"]),
            lora(2, &["other", "third"], &[]),
            lora(1, &["other"], &[]),
            lora(0, &[], &[]),
        ];
        let servers: Vec<_> = servers.iter().map(Some).chain([None]).collect();
        let request = Request { model: Some(b"sql"), ..Request::default() };
        let expected = [Some(1.0), Some(0.8), Some(0.8), Some(0.6), Some(0.0), Some(0.0), Some(0.0), None];
        assert_eq!(scores(&LoraAffinity, &request, &servers, |c, l| c.lora = l), expected);
    }
}
