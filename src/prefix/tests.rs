use std::slice;

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::*;

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

fn lookup(index: &Index, chains: &[Chain], endpoints: &[EndpointId]) -> Vec<u32> {
    let mut matched = vec![9, 9, 9];
    index.lookup(chains, endpoints, &mut matched);
    matched
}

#[test]
fn the_longest_shared_prefix_is_found_for_each_endpoint() {
    let mut index = Index::new(1000);
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
    let mut index = Index::new(1000);
    let prompt = whole(1, 10);
    // B has the tail only, as if its head had gone; A has all, so the walk does not stop at B's gap.
    index.insert(slice::from_ref(&prompt), A, 1000);
    index.insert(&[Chain { hashes: prompt.hashes[3..].to_vec(), tokens: 0 }], B, 1000);
    assert_eq!(lookup(&index, &[prompt], &[A, B]), [10, 0]);
}

#[test]
fn chains_of_one_request_are_summed() {
    let mut index = Index::new(1000);
    index.insert(&[whole(1, 5), whole(2, 7)], A, 1000);
    assert_eq!(lookup(&index, &[whole(2, 7), whole(1, 3), whole(3, 9)], &[A]), [10]);
}

#[test]
fn blocks_are_forgotten_when_the_cache_has_taken_in_as_many_new_ones() {
    let mut index = Index::new(10_000);
    index.insert(&[whole(1, 10)], A, 100);
    index.insert(&[whole(2, 90)], A, 100);
    assert_eq!(lookup(&index, &[whole(1, 10)], &[A]), [10], "both fit");
    index.insert(&[whole(3, 4)], A, 100);
    assert_eq!(lookup(&index, &[whole(1, 10)], &[A]), [6], "the tail goes first");
    index.insert(&[whole(4, 6)], A, 100);
    assert_eq!(lookup(&index, &[whole(1, 10)], &[A]), [0]);
    assert_eq!(lookup(&index, &[whole(4, 6)], &[A]), [6]);
}

#[test]
fn use_keeps_a_prompt_alive_and_costs_no_room() {
    let mut index = Index::new(10_000);
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
    let mut index = Index::new(10_000);
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
    let mut index = Index::new(10_000);
    for _ in 0..100 {
        index.insert(&[whole(1, 500)], A, 50);
        assert_eq!(lookup(&index, &[whole(1, 500)], &[A]), [50], "what the cache can hold");
        assert_eq!(index.blocks.len(), 50);
    }
    index.insert(&[whole(2, 500)], A, 50);
    assert_eq!(lookup(&index, &[whole(1, 500), whole(2, 500)], &[A]), [50], "the later one has pushed out the first");
    index.insert(&[whole(3, 10)], B, 0);
    assert_eq!(lookup(&index, &[whole(3, 10)], &[B]), [0], "a server without a cache");
}

#[test]
fn a_batch_longer_than_the_cache_does_not_count_twice() {
    let mut index = Index::new(10_000);
    let batch: Vec<_> = (1..10).map(|own| whole(own, 40)).collect();
    index.insert(&batch, A, 50);
    assert_eq!(lookup(&index, &batch, &[A]), [50]);
}

#[test]
fn a_smaller_capacity_counts_at_once() {
    let mut index = Index::new(10_000);
    index.insert(&[whole(1, 80)], A, 100);
    index.insert(&[whole(2, 1)], A, 10);
    assert_eq!(lookup(&index, &[whole(1, 80)], &[A]), [9]);
}

#[test]
fn p47_a_server_that_left_is_not_matched_and_comes_back_cold() {
    let mut index = Index::new(1000);
    index.insert(&[whole(1, 10)], A, 1000);
    let back = EndpointId(0xA2);
    assert_eq!(lookup(&index, &[whole(1, 10)], &[B, back]), [0, 0]);
    index.insert(&[whole(1, 3)], back, 1000);
    assert_eq!(lookup(&index, &[whole(1, 10)], &[back]), [3]);
}

#[test]
fn p47_endpoints_come_and_go_for_ever_in_bounded_memory() {
    let mut index = Index::new(1000);
    for id in 0..3 * MAX_ENDPOINTS as u64 {
        index.insert(&[whole(1, 2)], EndpointId(id), 1000);
        index.insert(&[whole(2, 2)], EndpointId(u64::MAX), 1000);
    }
    assert!(index.slots.len() <= MAX_ENDPOINTS && index.by_id.len() <= MAX_ENDPOINTS && index.blocks.len() <= 1000);
    assert_eq!(lookup(&index, &[whole(2, 2)], &[EndpointId(u64::MAX), EndpointId(0)]), [2, 0], "the one in use stays");
    // The place of an endpoint that was forgotten was given to another; what was noted for the first is not the other's.
    let last = EndpointId(3 * MAX_ENDPOINTS as u64 - 1);
    index.insert(&[whole(3, 1)], EndpointId(5), 1000);
    assert_eq!(lookup(&index, &[whole(1, 2)], &[last, EndpointId(5)]), [2, 0]);
}

#[test]
fn p55_two_ports_of_one_address_are_two_endpoints() {
    let mut index = Index::new(1000);
    let id = |endpoint: &str| EndpointId(xxh3_64(endpoint.as_bytes()));
    index.insert(&[whole(1, 10)], id("10.0.0.1:8000"), 1000);
    assert_eq!(lookup(&index, &[whole(1, 10)], &[id("10.0.0.1:8000"), id("10.0.0.1:8001")]), [10, 0]);
}

#[test]
fn a_block_may_be_held_by_all() {
    let mut index = Index::new(100_000);
    let endpoints: Vec<_> = (0..1000).map(EndpointId).collect();
    for (length, endpoint) in endpoints.iter().enumerate() {
        index.insert(&[whole(1, length % 64)], *endpoint, 1000);
    }
    let expected: Vec<_> = (0..1000).map(|length| length % 64).collect();
    assert_eq!(lookup(&index, &[whole(1, 64)], &endpoints), expected);
}

#[test]
fn entries_are_bounded_and_the_latest_stay() {
    let mut index = Index::new(1000);
    for own in 1..200 {
        index.insert(&[chain(7, 20, own, 100)], EndpointId(own % 5), 1_000_000);
        assert!(index.blocks.len() <= 1000);
        assert_eq!(lookup(&index, &[chain(7, 20, own, 100)], &[EndpointId(own % 5)]), [100], "the last");
        if own > 5 {
            let before = EndpointId((own - 1) % 5);
            assert_eq!(lookup(&index, &[chain(7, 20, own - 1, 100)], &[before]), [100], "the one before");
        }
    }
    index.insert(&[whole(8, 5000)], A, 1_000_000);
    assert!(index.blocks.len() <= 1000);
    let kept = lookup(&index, &[whole(8, 5000)], &[A])[0];
    assert!((500..=1000).contains(&kept), "of a prompt larger than the index the head stays: {kept}");
}

#[test]
fn an_index_of_no_entries_still_works() {
    let mut index = Index::new(0);
    index.insert(&[whole(1, 10)], A, 100);
    assert!(lookup(&index, &[whole(1, 10)], &[A])[0] <= 2);
}

#[test]
fn the_count_of_an_endpoint_may_wrap() {
    let mut index = Index::new(1000);
    index.insert(&[whole(1, 10)], A, 100);
    index.slots[0].clock = u64::from(u32::MAX - 5) << CLOCK_FRACTION;
    index.insert(&[whole(2, 10)], A, 100);
    assert_eq!(lookup(&index, &[whole(2, 10)], &[A]), [10]);
    index.insert(&[whole(3, 95)], A, 100);
    assert_eq!(lookup(&index, &[whole(2, 10)], &[A]), [5]);
}

/// What the index is a guess of: a cache that drops the block used longest ago, of a prompt the tail first.
#[test]
fn the_guess_follows_a_real_cache() {
    const CAPACITY: usize = 200;
    let mut index = Index::new(100_000);
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
