//! Which endpoints got prompts that nobody had cached, and in what order.
//!
//! For the scorer that spreads such prompts, and only kept where a profile has it. One list for all workers in shared data:
//! the ids of endpoints, 8 bytes each, little-endian, the one that got such a prompt longest ago first. An endpoint that
//! came back from being unreachable has another id, so it is one that never got any, as its cache is.

use crate::envelope;
use crate::id::EndpointId;
use crate::store::Store;

/// Most endpoints in the list: as many as a pool can have, and as many that left.
const MOST: u32 = 2048;

/// How often a write is tried when other workers write at the same moment.
const TRIES: u32 = 8;

/// One worker's hand on the list of all.
#[derive(Debug)]
pub struct Cold {
    key: Vec<u8>,
    /// Endpoints that are remembered.
    size: usize,
}

/// The list as read.
#[derive(Debug, Default)]
pub struct Order {
    /// Longest ago first.
    ids: Vec<EndpointId>,
    cas: u32,
}

impl Order {
    /// The place of an endpoint, the one longest ago at 0; `None` if it is not remembered.
    pub fn rank(&self, endpoint: EndpointId) -> Option<u32> {
        self.ids.iter().position(|id| *id == endpoint).and_then(|at| u32::try_from(at).ok())
    }
}

impl Cold {
    /// The hand on the list of `pool`, of at most `size` endpoints and never more than 2048; `None` if it is 0.
    pub fn new(pool: &str, size: u32) -> Option<Self> {
        let key = format!("endpoint-picker/{pool}/cold").into_bytes();
        (size > 0).then_some(Self { key, size: size.min(MOST) as usize })
    }

    /// Reads the list to decide by.
    pub fn read(&self, store: &dyn Store) -> Order {
        let found = store.get(&self.key);
        // What does not open was torn while being read, or is not ours. A token that old cannot overwrite it either.
        let sealed = found.value.as_deref().and_then(|value| envelope::open(&self.key, value));
        let (ids, _) = sealed.map(|sealed| sealed.payload).unwrap_or_default().as_chunks();
        Order { ids: ids.iter().map(|id| EndpointId(u64::from_le_bytes(*id))).collect(), cas: found.cas }
    }

    /// A prompt that nobody had cached goes to `endpoint`; `order` is what was decided by. If others write all the time, it
    /// is not remembered, and the next such prompt may go there too.
    pub fn used(&self, store: &dyn Store, order: Order, endpoint: EndpointId) {
        let mut order = Some(order);
        for _ in 0..TRIES {
            let Order { mut ids, cas } = order.take().unwrap_or_else(|| self.read(store));
            ids.retain(|id| *id != endpoint);
            ids.push(endpoint);
            let kept = ids.iter().skip(ids.len().saturating_sub(self.size));
            let payload: Vec<u8> = kept.flat_map(|id| id.0.to_le_bytes()).collect();
            if store.set(&self.key, &envelope::seal(&self.key, 0, &payload), cas) {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Found, Memory};

    const ENDPOINTS: [EndpointId; 4] = [EndpointId(7), EndpointId(u64::MAX), EndpointId(0), EndpointId(9)];

    fn cold(size: u32) -> Cold {
        Cold::new("p", size).unwrap()
    }

    fn ranks(cold: &Cold, store: &dyn Store) -> [Option<u32>; 4] {
        let order = cold.read(store);
        ENDPOINTS.map(|endpoint| order.rank(endpoint))
    }

    #[test]
    fn the_order_is_that_of_the_last_use() {
        let (store, cold) = (Memory::default(), cold(10));
        assert_eq!(ranks(&cold, &store), [None; 4]);
        for endpoint in [0, 1, 2, 0] {
            cold.used(&store, cold.read(&store), ENDPOINTS[endpoint]);
        }
        assert_eq!(ranks(&cold, &store), [Some(2), Some(0), Some(1), None]);
    }

    #[test]
    fn the_list_never_grows_beyond_its_size() {
        let (store, cold) = (Memory::default(), cold(2));
        for endpoint in ENDPOINTS {
            cold.used(&store, cold.read(&store), endpoint);
        }
        assert_eq!(ranks(&cold, &store), [None, None, Some(0), Some(1)]);
        let (store, cold) = (Memory::default(), Cold::new("p", u32::MAX).unwrap());
        for id in 0..3000 {
            cold.used(&store, cold.read(&store), EndpointId(id));
        }
        assert!(store.bytes() < 2048 * 8 + 100, "{}", store.bytes());
    }

    #[test]
    fn what_workers_remember_at_the_same_moment_is_all_remembered() {
        let store = Memory::default();
        let workers = [cold(10), cold(10), cold(10)];
        let read: Vec<_> = workers.iter().map(|worker| worker.read(&store)).collect();
        for ((worker, order), endpoint) in workers.iter().zip(read).zip(ENDPOINTS) {
            worker.used(&store, order, endpoint);
        }
        for worker in &workers {
            assert_eq!(ranks(worker, &store), [Some(0), Some(1), Some(2), None]);
        }
    }

    #[test]
    fn foreign_bytes_are_an_empty_list_and_are_overwritten() {
        let (store, cold) = (Memory::default(), cold(10));
        for foreign in [&b""[..], b"garbage", &[0xff; 500]] {
            store.set(&cold.key, foreign, store.get(&cold.key).cas);
            assert_eq!(ranks(&cold, &store), [None; 4]);
            cold.used(&store, cold.read(&store), ENDPOINTS[0]);
            assert_eq!(ranks(&cold, &store), [Some(0), None, None, None]);
        }
    }

    #[test]
    fn a_store_that_takes_nothing_does_not_hold_a_request_up() {
        struct Full;
        impl Store for Full {
            fn get(&self, _: &[u8]) -> Found {
                Found::default()
            }
            fn set(&self, _: &[u8], _: &[u8], _: u32) -> bool {
                false
            }
        }
        let cold = cold(10);
        cold.used(&Full, cold.read(&Full), ENDPOINTS[0]);
        assert_eq!(ranks(&cold, &Full), [None; 4]);
    }

    #[test]
    fn a_profile_that_wants_no_memory_has_none() {
        assert!(Cold::new("p", 0).is_none());
    }
}
