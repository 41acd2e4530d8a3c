use std::cell::RefCell;
use std::slice;

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::*;
use crate::store::Memory;

const A: EndpointId = EndpointId(1);
const B: EndpointId = EndpointId(2);

/// A prompt of `length` blocks that shares its first `common` blocks with all others of the same `family`.
fn chain(family: u64, common: usize, own: u64, length: usize) -> Chain {
    let hash = |owner: u64, at: usize| xxh3_64_with_seed(&at.to_le_bytes(), owner);
    let hashes = (0..length).map(|at| hash(if at < common { family } else { own }, at)).collect();
    Chain { hashes, tokens: length as u32 * 64 }
}

fn whole(own: u64, length: usize) -> Chain {
    chain(own, length, own, length)
}

/// The index with a store and what the ledger keeps for it.
struct Fixture {
    index: Index,
    store: Memory,
    caches: RefCell<Vec<Cache>>,
}

impl Fixture {
    fn new(max_entries: usize) -> Self {
        Self { index: Index::new("p", max_entries), store: Memory::default(), caches: RefCell::default() }
    }

    fn cache(&self, endpoint: EndpointId) -> Cache {
        let caches = self.caches.borrow();
        caches.iter().find(|c| c.endpoint == endpoint).copied().unwrap_or(Cache { endpoint, clock: 0, capacity: 0 })
    }

    fn insert(&self, chains: &[Chain], endpoint: EndpointId, capacity: u32) {
        let cache = Cache { capacity, ..self.cache(endpoint) };
        let lookup = self.index.lookup(&self.store, chains, &[cache]);
        let advance = self.index.advance(&lookup, chains, &cache);
        let mut caches = self.caches.borrow_mut();
        caches.retain(|c| c.endpoint != endpoint);
        caches.push(Cache { clock: cache.clock + advance.iter().sum::<u64>(), ..cache });
        self.index.insert(&self.store, &lookup, chains, cache, &advance, &caches);
    }
}

fn lookup(fixture: &Fixture, chains: &[Chain], endpoints: &[EndpointId]) -> Vec<u32> {
    let caches: Vec<_> = endpoints.iter().map(|id| fixture.cache(*id)).collect();
    fixture.index.lookup(&fixture.store, chains, &caches).matched
}

#[test]
fn the_longest_shared_prefix_is_found_for_each_endpoint() {
    let index = Fixture::new(1000);
    index.insert(&[chain(7, 10, 1, 30)], A, 1000);
    index.insert(&[chain(7, 4, 2, 30)], B, 1000);
    let asked = chain(7, 20, 3, 30);
    assert_eq!(lookup(&index, &[asked], &[A, B, EndpointId(3)]), [10, 4, 0]);
    assert_eq!(lookup(&index, &[chain(7, 10, 1, 30)], &[B, A]), [4, 30]);
    assert_eq!(lookup(&index, &[], &[A]), [0]);
    assert!(lookup(&index, &[whole(1, 5)], &[]).is_empty());
}

#[test]
fn a_block_after_a_gap_does_not_count() {
    let index = Fixture::new(1000);
    let prompt = whole(1, 10);
    // B has the tail only, as if its head had gone; A has all, so the walk does not stop at B's gap.
    index.insert(slice::from_ref(&prompt), A, 1000);
    index.insert(&[Chain { hashes: prompt.hashes[3..].to_vec(), tokens: 0 }], B, 1000);
    assert_eq!(lookup(&index, &[prompt], &[A, B]), [10, 0]);
}

#[test]
fn chains_of_one_request_are_summed() {
    let index = Fixture::new(1000);
    index.insert(&[whole(1, 5), whole(2, 7)], A, 1000);
    assert_eq!(lookup(&index, &[whole(2, 7), whole(1, 3), whole(3, 9)], &[A]), [10]);
}

#[test]
fn blocks_are_forgotten_when_the_cache_has_taken_in_as_many_new_ones() {
    let index = Fixture::new(10_000);
    index.insert(&[whole(1, 10)], A, 100);
    index.insert(&[whole(2, 90)], A, 100);
    assert_eq!(lookup(&index, &[whole(1, 10)], &[A]), [10], "both fit");
    index.insert(&[whole(3, 4)], A, 100);
    assert_eq!(lookup(&index, &[whole(1, 10)], &[A]), [6], "the tail goes first");
    index.insert(&[whole(4, 6)], A, 100);
    assert_eq!(lookup(&index, &[whole(1, 10)], &[A]), [0]);
    assert_eq!(lookup(&index, &[whole(4, 6)], &[A]), [6]);
}

/// The endpoint picker's own cases. A full cache of its loses the head of a prompt first, ours whole prompts or their tails.
#[test]
fn small_prompts_match_as_in_the_endpoint_picker() {
    let index = Fixture::new(1000);
    index.insert(&[chain(1, 1, 2, 2)], A, 1000);
    assert_eq!(lookup(&index, &[chain(1, 1, 3, 2)], &[A]), [1], "[1,3] after [1,2]");
    index.insert(&[whole(4, 3), whole(5, 2)], A, 1000);
    assert_eq!(lookup(&index, &[whole(4, 3), whole(5, 2)], &[A]), [5], "all five of two prompts");
    assert_eq!(lookup(&index, &[chain(4, 1, 6, 2), chain(5, 1, 7, 2)], &[A]), [2], "two of four");

    let full = Fixture::new(1000);
    (1..=3).for_each(|own| full.insert(&[whole(own, 1)], A, 2));
    assert_eq!([1, 2, 3].map(|own| lookup(&full, &[whole(own, 1)], &[A])[0]), [0, 1, 1], "a cache of two");
}

#[test]
fn use_keeps_a_prompt_alive_and_costs_no_room() {
    let index = Fixture::new(10_000);
    index.insert(&[whole(1, 10)], A, 100);
    for own in 2..50 {
        index.insert(&[whole(own, 30)], A, 100);
        index.insert(&[whole(1, 10)], A, 100);
    }
    assert_eq!(lookup(&index, &[whole(1, 10)], &[A]), [10]);
    assert_eq!(lookup(&index, &[whole(49, 30)], &[A]), [30]);
    assert_eq!(lookup(&index, &[whole(48, 30)], &[A]), [30]);
    assert_eq!(lookup(&index, &[whole(40, 30)], &[A]), [0]);
}

#[test]
fn the_head_of_a_prompt_is_never_older_than_its_tail() {
    let index = Fixture::new(10_000);
    index.insert(&[chain(7, 20, 1, 60)], A, 100);
    index.insert(&[chain(7, 20, 2, 60)], A, 100);
    // The second took 40 new blocks; of the first's own 40 the tail has to go, never the shared head.
    for own in 3..6 {
        index.insert(&[whole(own, 10)], A, 100);
        let first = lookup(&index, &[chain(7, 20, 1, 60)], &[A])[0];
        let second = lookup(&index, &[chain(7, 20, 2, 60)], &[A])[0];
        assert!((20..60).contains(&first) && second > 40, "{first} {second}");
    }
}

#[test]
fn a_prompt_longer_than_the_cache_neither_leaks_nor_lies() {
    let index = Fixture::new(10_000);
    for _ in 0..100 {
        index.insert(&[whole(1, 500)], A, 50);
        assert_eq!(lookup(&index, &[whole(1, 500)], &[A]), [50], "what the cache can hold");
    }
    index.insert(&[whole(2, 500)], A, 50);
    assert_eq!(lookup(&index, &[whole(1, 500), whole(2, 500)], &[A]), [50], "the later one has pushed out the first");
    index.insert(&[whole(3, 10)], B, 0);
    assert_eq!(lookup(&index, &[whole(3, 10)], &[B]), [0], "a server without a cache");
}

#[test]
fn a_batch_longer_than_the_cache_does_not_count_twice() {
    let index = Fixture::new(10_000);
    let batch: Vec<_> = (1..10).map(|own| whole(own, 40)).collect();
    index.insert(&batch, A, 50);
    assert_eq!(lookup(&index, &batch, &[A]), [50]);
}

#[test]
fn a_smaller_capacity_counts_at_once() {
    let index = Fixture::new(10_000);
    index.insert(&[whole(1, 80)], A, 100);
    index.insert(&[whole(2, 1)], A, 10);
    assert_eq!(lookup(&index, &[whole(1, 80)], &[A]), [9]);
}

#[test]
fn p47_a_server_that_left_is_not_matched_and_comes_back_cold() {
    let index = Fixture::new(1000);
    index.insert(&[whole(1, 10)], A, 1000);
    let back = EndpointId(0xA2);
    assert_eq!(lookup(&index, &[whole(1, 10)], &[B, back]), [0, 0]);
    index.insert(&[whole(1, 3)], back, 1000);
    assert_eq!(lookup(&index, &[whole(1, 10)], &[back]), [3]);
}

#[test]
fn p47_endpoints_come_and_go_for_ever_in_bounded_memory() {
    let index = Fixture::new(1000);
    for id in 10..3_000 {
        index.caches.borrow_mut().retain(|cache| cache.endpoint == EndpointId(9));
        index.insert(&[whole(1, 2)], EndpointId(id), 1000);
        index.insert(&[whole(2, 2)], EndpointId(9), 1000);
    }
    assert_eq!(lookup(&index, &[whole(2, 2)], &[EndpointId(9), EndpointId(10)]), [2, 0], "the one in use stays");
    assert!(index.store.bytes() < 1_000, "{} bytes", index.store.bytes());
}

#[test]
fn p55_two_ports_of_one_address_are_two_endpoints() {
    let index = Fixture::new(1000);
    let id = |endpoint: &str| EndpointId(xxh3_64(endpoint.as_bytes()));
    index.insert(&[whole(1, 10)], id("10.0.0.1:8000"), 1000);
    assert_eq!(lookup(&index, &[whole(1, 10)], &[id("10.0.0.1:8000"), id("10.0.0.1:8001")]), [10, 0]);
}

#[test]
fn a_block_may_be_held_by_all() {
    let index = Fixture::new(100_000);
    let endpoints: Vec<_> = (0..200).map(EndpointId).collect();
    for (length, endpoint) in endpoints.iter().enumerate() {
        index.insert(&[whole(1, length % 8 * 8)], *endpoint, 1000);
    }
    let expected: Vec<_> = (0..200).map(|length| length % 8 * 8).collect();
    assert_eq!(lookup(&index, &[whole(1, 64)], &endpoints), expected);
}

#[test]
fn memory_is_bounded_and_the_latest_stay() {
    let index = Fixture::new(1000);
    for own in 1..500 {
        index.insert(&[chain(7, 20, own, 100)], EndpointId(own % 5), 1_000_000);
        assert!(index.store.bytes() <= 4 * 4_100, "{} bytes", index.store.bytes());
        assert_eq!(lookup(&index, &[chain(7, 20, own, 100)], &[EndpointId(own % 5)]), [100], "the last");
        if own > 5 {
            let before = EndpointId((own - 1) % 5);
            assert_eq!(lookup(&index, &[chain(7, 20, own - 1, 100)], &[before]), [100], "the one before");
        }
    }
}

#[test]
fn an_index_of_no_entries_still_works() {
    let index = Fixture::new(0);
    index.insert(&[whole(1, 10)], A, 100);
    assert_eq!(lookup(&index, &[whole(1, 10)], &[A]), [10]);
}

#[test]
fn the_clock_of_an_endpoint_may_wrap() {
    let index = Fixture::new(1000);
    index.insert(&[whole(1, 10)], A, 100);
    index.caches.borrow_mut()[0].clock = u64::from(u32::MAX - 5) << CLOCK_FRACTION;
    index.insert(&[whole(2, 10)], A, 100);
    assert_eq!(lookup(&index, &[whole(2, 10)], &[A]), [10]);
    index.insert(&[whole(3, 95)], A, 100);
    assert_eq!(lookup(&index, &[whole(2, 10)], &[A]), [5]);
}

#[test]
fn values_that_are_torn_or_foreign_match_nothing_and_are_replaced() {
    let index = Fixture::new(0);
    index.insert(&[whole(1, 40)], A, 100);
    let key = index.index.key_of(page::block(&whole(1, 1).hashes[0]));
    for foreign in [&b""[..], b"x", &[7; 300]] {
        index.store.set(&key, foreign, index.store.get(&key).cas);
        assert_eq!(lookup(&index, &[whole(1, 40)], &[A]), [0]);
        index.insert(&[whole(1, 40)], A, 100);
        assert_eq!(lookup(&index, &[whole(1, 40)], &[A]), [40]);
    }
}

#[test]
fn a_prompt_of_128_blocks_takes_four_reads_and_when_known_no_writes() {
    struct Counting(Memory, std::cell::Cell<(u32, u32)>);
    impl Store for Counting {
        fn get(&self, key: &[u8]) -> crate::store::Found {
            let (reads, writes) = self.1.get();
            self.1.set((reads + 1, writes));
            self.0.get(key)
        }
        fn set(&self, key: &[u8], value: &[u8], cas: u32) -> bool {
            let (reads, writes) = self.1.get();
            self.1.set((reads, writes + 1));
            self.0.set(key, value, cas)
        }
    }
    let store = Counting(Memory::default(), std::cell::Cell::default());
    let index = Index::new("p", 100_000);
    let chains = [whole(1, 128)];
    let mut cache = Cache { endpoint: A, clock: 0, capacity: 10_000 };
    let mut costs = Vec::new();
    for _ in 0..2 {
        store.1.set((0, 0));
        let lookup = index.lookup(&store, &chains, &[cache]);
        let advance = index.advance(&lookup, &chains, &cache);
        index.insert(&store, &lookup, &chains, cache, &advance, &[cache]);
        cache.clock += advance[0];
        costs.push(store.1.get());
    }
    assert_eq!(costs, [(4, 4), (4, 0)]);
}

/// What the index is a guess of: a cache that drops the block used longest ago, of a prompt the tail first.
#[test]
fn the_guess_follows_a_real_cache() {
    const CAPACITY: usize = 200;
    let index = Fixture::new(100_000);
    let mut cache: Vec<u64> = Vec::new();
    let mut random = 88_172_645_463_325_252u64;
    let mut next = |limit: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % limit
    };
    let (mut believed, mut held, mut wrong) = (0, 0, 0);
    for _ in 0..3000 {
        let prompt = chain(next(5), 8, 100 + next(30), 8 + next(20) as usize);
        let guess = lookup(&index, slice::from_ref(&prompt), &[A])[0] as usize;
        let real = prompt.hashes.iter().take_while(|hash| cache.contains(hash)).count();
        believed += guess;
        held += real;
        wrong += guess.abs_diff(real);
        index.insert(slice::from_ref(&prompt), A, CAPACITY as u32);
        cache.retain(|hash| !prompt.hashes.contains(hash));
        cache.extend(prompt.hashes.iter().rev());
        cache.drain(..cache.len().saturating_sub(CAPACITY));
    }
    println!("{believed} blocks believed, {held} held, {wrong} wrong");
    assert!(wrong * 20 < held, "{believed} believed, {held} held, {wrong} wrong");
}

#[test]
fn the_longest_prompt_that_can_be_configured_is_found_whole() {
    let index = Fixture::new(10_000);
    let prompt = whole(1, 3072);
    index.insert(slice::from_ref(&prompt), A, 10_000);
    assert_eq!(lookup(&index, &[prompt], &[A]), [3072]);
}
