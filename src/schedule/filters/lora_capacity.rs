//! `lora-capacity`: not the endpoints whose adapter slots are all taken by other adapters.
//!
//! A request for an adapter queues in the engine until a slot is free, however idle the engine is. Endpoints that serve
//! the adapter already, have room for one more, or do not tell are kept; if none is left, all are.

use crate::schedule::{Candidate, Filter, Request, Rng};

/// Removes endpoints with no slot for the request's adapter.
#[derive(Debug)]
pub struct LoraCapacity;

impl Filter for LoraCapacity {
    fn filter(&self, request: &Request<'_>, candidates: &mut Vec<Candidate<'_>>, _: &mut Rng) {
        let Some(model) = request.model else { return };
        // Only a name that some endpoint lists is known to be an adapter; a base model needs no slot.
        let is_adapter = candidates.iter().filter_map(|c| c.lora).any(|lora| lora.holds(model));
        let fits = |c: &Candidate<'_>| c.lora.is_none_or(|lora| lora.holds(model) || lora.has_room());
        if is_adapter && candidates.iter().any(fits) {
            candidates.retain(fits);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scrape::Lora;

    fn lora(max: u32, running: &[&str]) -> Lora {
        Lora { max, running: running.iter().map(|name| name.as_bytes().into()).collect(), waiting: Vec::new() }
    }

    fn kept(model: &str, servers: &[Option<Lora>]) -> Vec<usize> {
        let names = ["0", "1", "2", "3"];
        let mut candidates: Vec<_> = servers
            .iter()
            .zip(names)
            .map(|(lora, name)| Candidate { lora: lora.as_ref(), ..Candidate::named(name) })
            .collect();
        let request = Request { model: Some(model.as_bytes()), ..Request::default() };
        LoraCapacity.filter(&request, &mut candidates, &mut Rng::new(1));
        candidates.iter().map(|c| c.address.parse().unwrap()).collect()
    }

    #[test]
    fn a_full_endpoint_is_left_out_unless_it_serves_the_adapter() {
        let servers = [Some(lora(1, &["other"])), Some(lora(1, &["sql"])), Some(lora(2, &["other"])), None];
        assert_eq!(kept("sql", &servers), [1, 2, 3]);
    }

    #[test]
    fn a_base_model_needs_no_slot() {
        let servers = [Some(lora(1, &["other"])), Some(lora(2, &["other"]))];
        assert_eq!(kept("base", &servers), [0, 1]);
    }

    #[test]
    fn with_every_slot_taken_all_endpoints_stay() {
        let mut both = [Some(lora(1, &["a"])), Some(lora(1, &["b"]))];
        both[0].as_mut().unwrap().waiting.push(b"sql".as_slice().into());
        assert_eq!(kept("sql", &both), [0], "the one it waits at");
        assert_eq!(kept("chat", &both[1..]), [0]);
    }
}
