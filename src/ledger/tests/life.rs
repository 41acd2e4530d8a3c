//! Workers that stall, start and die, and stores that fail them.

use super::*;

/// A worker whose thread stands still while the others go on.
fn stalled(store: &Memory) -> (Ledger, Ledger) {
    let (mut one, mut two) = (Ledger::new("p", 1), Ledger::new("p", 2));
    live(&mut [&mut one, &mut two], store, 0, 1_000);
    (one, two)
}

#[test]
fn what_a_worker_opens_after_a_stall_and_before_its_tick_counts_once() {
    let store = Memory::default();
    let (mut one, mut two) = stalled(&store);
    let before = open(&mut one, &store, A, at(1_000));
    live(&mut [&mut two], &store, 1_000, 4_000);
    assert_eq!(requests(&two, &store, A), 0, "taken for dead");
    let after = open(&mut one, &store, A, at(4_000));
    assert_eq!(requests(&two, &store, A), 2);
    live(&mut [&mut one, &mut two], &store, 4_000, 6_000);
    assert_eq!(requests(&two, &store, A), 2);
    one.close(before, at(6_000));
    one.close(after, at(6_000));
    live(&mut [&mut one, &mut two], &store, 6_000, 7_000);
    assert_eq!(requests(&two, &store, A), 0);
}

#[test]
fn what_ended_during_a_stall_takes_nothing_from_others() {
    let store = Memory::default();
    let (mut one, mut two) = stalled(&store);
    let ends = open(&mut one, &store, A, at(1_000));
    let others = [open(&mut two, &store, A, at(1_000)), open(&mut two, &store, A, at(1_000))];
    live(&mut [&mut two], &store, 1_000, 4_000);
    one.close(ends, at(4_000));
    let stays = open(&mut one, &store, B, at(4_000));
    assert_eq!((requests(&two, &store, A), requests(&two, &store, B)), (2, 1));
    live(&mut [&mut one, &mut two], &store, 4_000, 6_000);
    assert_eq!((requests(&two, &store, A), requests(&two, &store, B)), (2, 1));
    others.into_iter().for_each(|entry| two.close(entry, at(6_000)));
    one.close(stays, at(6_000));
}

#[test]
fn a_clock_that_steps_takes_nobody_for_dead() {
    let steps: [fn(Timestamp) -> Timestamp; 2] =
        [|now| now.plus(Duration::from_secs(7)), |Timestamp(now)| Timestamp(now - 3_600_000)];
    for step in steps {
        let store = Memory::default();
        let (mut one, mut two) = stalled(&store);
        let mut entries = vec![open(&mut one, &store, A, at(1_000)), open(&mut two, &store, A, at(1_000))];
        for ms in (1_000..3_000).step_by(20) {
            let now = step(at(ms));
            one.tick(&store, now);
            assert_eq!(requests(&one, &store, A) as usize, entries.len());
            if ms == 1_000 {
                entries.push(open(&mut two, &store, A, now));
            }
            two.tick(&store, now);
            assert_eq!(requests(&one, &store, A) as usize, entries.len());
        }
    }
}

/// A store that takes no value of the totals.
struct NoTotals<'a>(&'a Memory);

impl Store for NoTotals<'_> {
    fn get(&self, key: &[u8]) -> crate::store::Found {
        self.0.get(key)
    }

    fn set(&self, key: &[u8], value: &[u8], cas: u32) -> bool {
        !key.ends_with(b"totals") && self.0.set(key, value, cas)
    }
}

#[test]
fn a_store_that_was_full_for_a_while_counts_nothing_twice_and_forgets_no_dead() {
    let store = Memory::default();
    let (mut one, mut two) = stalled(&store);
    let _stays = open(&mut one, &store, A, at(1_000));
    let _dies = open(&mut two, &store, B, at(1_000));
    for now in (1_000..4_000).step_by(5) {
        let entry = one.open(&NoTotals(&store), one.read(&store), job(A), None, at(now));
        one.close(entry, at(now));
        one.tick(&NoTotals(&store), at(now));
    }
    assert!(one.unwritten.len() <= MAX_UNWRITTEN + 4);
    assert_eq!((requests(&two, &store, A), requests(&two, &store, B)), (1, 1), "nothing was written");
    one.tick(&store, at(4_000));
    assert_eq!((requests(&two, &store, A), requests(&two, &store, B)), (1, 0));
}

#[test]
fn a_worker_that_dies_soon_after_its_first_request_leaves_nothing() {
    for lived in [0, 20, 300] {
        let store = Memory::default();
        let mut two = Ledger::new("p", 2);
        live(&mut [&mut two], &store, 0, 1_000);
        let mut one = Ledger::new("p", 1);
        let _dies = open(&mut one, &store, A, at(1_000));
        live(&mut [&mut one, &mut two], &store, 1_000, 1_000 + lived);
        live(&mut [&mut two], &store, 1_000 + lived, 4_000);
        assert_eq!(requests(&two, &store, A), 0, "it lived for {lived} ms");
    }
    // The first of all is sure of its place at its second tick; then what it had before is its part.
    let store = Memory::default();
    let (mut one, mut two) = (Ledger::new("p", 1), Ledger::new("p", 2));
    let _dies = open(&mut one, &store, A, START);
    live(&mut [&mut one], &store, 0, 300);
    live(&mut [&mut two], &store, 300, 4_000);
    assert_eq!(requests(&two, &store, A), 0);
}

#[test]
fn a_server_that_comes_and_goes_lengthens_no_workers_part_for_ever() {
    let store = Memory::default();
    let (mut one, mut two) = (Ledger::new("p", 1), Ledger::new("p", 2));
    for life in 0..50 {
        let (now, generation) = (at(300_000 * life), EndpointId(100 + life));
        for ledger in [&mut one, &mut two] {
            let entry = open(ledger, &store, generation, now);
            ledger.close(entry, now);
            ledger.tick(&store, now);
            let book = ledger.read(&store).book;
            ledger.tidy(&book, &[A, generation], now);
        }
    }
    for ledger in [&one, &two] {
        let lines = [ledger.own.lines().count(), ledger.read(&store).book.lines().count()];
        assert!(lines.iter().all(|lines| *lines < 20), "{lines:?}");
    }
}
