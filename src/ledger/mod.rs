//! What this proxy sent where and has not seen end.
//!
//! Scraped queues are late by an engine step or more; the proxy's own book is not. An [`Entry`] is opened at the pick
//! and consumed when the request's stream is gone, whatever ended it, so that it is closed exactly once. Entries have no
//! time limit: a long generation is work, not a leak.

use hashbrown::HashMap;

use crate::fleet::EndpointId;

/// Requests in flight per endpoint.
#[derive(Debug, Default)]
pub struct Ledger {
    in_flight: HashMap<EndpointId, u32>,
}

/// One request in flight. Not `Clone`: [`Ledger::close`] takes it away.
#[derive(Debug)]
#[must_use = "an entry that is never closed counts for ever"]
pub struct Entry {
    endpoint: EndpointId,
}

impl Ledger {
    /// A request goes to `endpoint`.
    pub fn open(&mut self, endpoint: EndpointId) -> Entry {
        *self.in_flight.entry(endpoint).or_default() += 1;
        Entry { endpoint }
    }

    /// Its stream is gone.
    pub fn close(&mut self, entry: Entry) {
        if let Some(count) = self.in_flight.get_mut(&entry.endpoint) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.in_flight.remove(&entry.endpoint);
            }
        }
    }

    /// Requests in flight at `endpoint`.
    pub fn in_flight(&self, endpoint: EndpointId) -> u32 {
        self.in_flight.get(&endpoint).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_return_to_nothing_and_leave_nothing_behind() {
        let (a, b) = (EndpointId(1), EndpointId(2));
        let mut ledger = Ledger::default();
        let (first, second, other) = (ledger.open(a), ledger.open(a), ledger.open(b));
        assert_eq!((ledger.in_flight(a), ledger.in_flight(b)), (2, 1));
        ledger.close(first);
        ledger.close(other);
        assert_eq!((ledger.in_flight(a), ledger.in_flight(b)), (1, 0));
        ledger.close(second);
        assert!(ledger.in_flight.is_empty(), "removed endpoints would pile up");
    }
}
