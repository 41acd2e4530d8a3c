mod clock;
mod life;

use std::time::Duration;

use super::*;
use crate::store::Memory;

const A: EndpointId = EndpointId(1);
const B: EndpointId = EndpointId(2);
const START: Timestamp = Timestamp(1_796_000_000_000);

fn at(millis: u64) -> Timestamp {
    START.plus(Duration::from_millis(millis))
}

fn job(endpoint: EndpointId) -> Job {
    Job {
        endpoint,
        uncached_tokens: 1000,
        context_tokens: 1500,
        kv_tokens: 1200,
        prefill_micros: 40_000,
        blocks: 16 << 16,
        streams: true,
    }
}

fn open(ledger: &mut Ledger, store: &Memory, endpoint: EndpointId, now: Timestamp) -> Entry {
    let draft = ledger.read(store);
    ledger.open(store, draft, job(endpoint), None, now)
}

/// Lets workers live for a while.
fn live(workers: &mut [&mut Ledger], store: &Memory, from: u64, to: u64) {
    for now in (from..to).step_by(20) {
        for worker in workers.iter_mut() {
            worker.tick(store, at(now));
        }
    }
}

fn requests(ledger: &Ledger, store: &Memory, endpoint: EndpointId) -> u32 {
    ledger.read(store).book.line(endpoint).requests
}

#[test]
fn what_one_worker_sends_the_others_see_at_once() {
    let store = Memory::default();
    let (mut one, two) = (Ledger::new("p", 1), Ledger::new("p", 2));
    let _entry = open(&mut one, &store, A, START);
    let line = two.read(&store).book.line(A);
    assert_eq!(
        (line.requests, line.prefilling, line.prefill_tokens, line.context_tokens, line.kv_tokens),
        (1, 1, 1000, 1500, 1200)
    );
    assert_eq!(two.read(&store).book.line(B), Line::default());
}

#[test]
fn a_request_leaves_nothing_behind_whatever_ends_it() {
    let store = Memory::default();
    let mut ledger = Ledger::new("p", 1);
    let finished = open(&mut ledger, &store, A, START);
    let broken_off = open(&mut ledger, &store, A, START);
    let moved = open(&mut ledger, &store, A, START);
    let mut finished = finished;
    ledger.first_token(&mut finished, true, at(50));
    ledger.first_token(&mut finished, true, at(60));
    ledger.close(finished, at(900));
    ledger.close(broken_off, at(70));
    let moved = ledger.moved(moved, B, 0, at(80));
    assert_eq!((requests(&ledger, &store, A), requests(&ledger, &store, B)), (0, 1));
    ledger.close(moved, at(90));
    ledger.tick(&store, at(100));
    for (endpoint, line) in Ledger::new("p", 2).read(&store).book.lines() {
        assert_eq!(Line { clock: 0, free_at_micros: 0, ..*line }, Line::default(), "{endpoint:?}");
    }
    assert_eq!(ledger.own_requests(), 0);
}

#[test]
fn the_virtual_clock_runs_ahead_and_a_first_token_sets_it_right() {
    let store = Memory::default();
    let mut ledger = Ledger::new("p", 1);
    let mut first = open(&mut ledger, &store, A, START);
    let second = open(&mut ledger, &store, A, START);
    let wait = |ledger: &Ledger, now| ledger.read(&store).book.line(A).wait_seconds(now);
    assert_eq!(wait(&ledger, START), 0.08);
    assert_eq!(wait(&ledger, at(30)), 0.05);
    // The server was slower than thought: one prompt is still to be read, from now on.
    ledger.first_token(&mut first, true, at(200));
    assert_eq!(wait(&ledger, at(200)), 0.04);
    ledger.close(second, at(210));
    assert_eq!(wait(&ledger, at(210)), 0.0);
    ledger.close(first, at(220));
}

#[test]
fn the_part_of_a_dead_worker_is_gone_within_two_seconds_and_only_once() {
    let store = Memory::default();
    let (mut one, mut two, mut three) = (Ledger::new("p", 1), Ledger::new("p", 2), Ledger::new("p", 3));
    live(&mut [&mut one, &mut two, &mut three], &store, 0, 1_000);
    let _dies = open(&mut one, &store, A, at(1_000));
    let _stays = open(&mut two, &store, A, at(1_000));
    assert_eq!(requests(&three, &store, A), 2);
    live(&mut [&mut two, &mut three], &store, 1_000, 3_000);
    assert_eq!(requests(&three, &store, A), 1);
    live(&mut [&mut two, &mut three], &store, 3_000, 6_000);
    assert_eq!(requests(&three, &store, A), 1);
}

#[test]
fn a_worker_that_stalled_is_counted_again_when_it_comes_back() {
    let store = Memory::default();
    let (mut one, mut two) = (Ledger::new("p", 1), Ledger::new("p", 2));
    live(&mut [&mut one, &mut two], &store, 0, 1_000);
    let entry = open(&mut one, &store, A, at(1_000));
    live(&mut [&mut two], &store, 1_000, 4_000);
    assert_eq!(requests(&two, &store, A), 0);
    live(&mut [&mut one, &mut two], &store, 4_000, 5_000);
    assert_eq!(requests(&two, &store, A), 1);
    one.close(entry, at(5_000));
    live(&mut [&mut one, &mut two], &store, 5_000, 6_000);
    assert_eq!(requests(&two, &store, A), 0);
}

#[test]
fn many_workers_and_many_endings_add_up_to_nothing() {
    let store = Memory::default();
    let mut workers: Vec<_> = (1..=16).map(|id| Ledger::new("p", id)).collect();
    let mut open_entries: Vec<Vec<Entry>> = (0..16).map(|_| Vec::new()).collect();
    let mut random = crate::schedule::Rng::new(5);
    for step in 0..20_000u64 {
        let now = at(step);
        let who = (random.next_u64() % 16) as usize;
        let entries = &mut open_entries[who];
        match random.next_u64() % 4 {
            0 | 1 if entries.len() < 40 => {
                let endpoint = EndpointId(random.next_u64() % 8);
                entries.push(open(&mut workers[who], &store, endpoint, now));
            }
            2 => {
                if let Some(entry) = entries.last_mut() {
                    workers[who].first_token(entry, true, now);
                }
            }
            _ => {
                if let Some(entry) = entries.pop() {
                    workers[who].close(entry, now);
                }
            }
        }
        if step % 20 == 0 {
            workers.iter_mut().for_each(|worker| worker.tick(&store, now));
        }
    }
    for (worker, entries) in workers.iter_mut().zip(open_entries) {
        entries.into_iter().for_each(|entry| worker.close(entry, at(20_000)));
        worker.tick(&store, at(20_000));
    }
    for (endpoint, line) in workers[0].read(&store).book.lines() {
        assert_eq!((line.requests, line.prefilling, line.prefill_tokens), (0, 0, 0), "{endpoint:?}");
        assert_eq!((line.context_tokens, line.kv_tokens, line.prefill_micros), (0, 0, 0), "{endpoint:?}");
    }
}

#[test]
fn endpoints_that_left_long_ago_leave_the_book() {
    let store = Memory::default();
    let (mut one, mut two) = (Ledger::new("p", 1), Ledger::new("p", 2));
    let hour = 3_600_000;
    let lines = |ledger: &Ledger| ledger.read(&store).book.lines().map(|(id, _)| id).collect::<Vec<_>>();
    let tidy = |ledger: &mut Ledger, now| {
        let book = ledger.read(&store).book;
        ledger.tidy(&book, &[B], at(now));
        ledger.tick(&store, at(now));
    };
    let (mut streaming, idle) = (open(&mut one, &store, A, START), open(&mut two, &store, B, START));
    two.close(idle, at(10));
    two.tick(&store, at(10));

    for now in [hour / 2, 2 * hour] {
        tidy(&mut two, now);
        assert_eq!(lines(&one), [A, B], "a stream goes on");
    }
    one.first_token(&mut streaming, true, at(2 * hour));
    one.close(streaming, at(2 * hour));
    one.tick(&store, at(2 * hour));
    tidy(&mut two, 2 * hour + 1);
    assert_eq!(lines(&one), [A, B], "it may come back");
    tidy(&mut two, 4 * hour);
    assert_eq!(lines(&one), [B]);
    one.tick(&store, at(4 * hour + 20));
    assert_eq!(lines(&two), [B], "the worker that had sent something there brings nothing back");
}

#[test]
fn foreign_bytes_under_the_key_are_no_book() {
    let store = Memory::default();
    let mut ledger = Ledger::new("p", 1);
    for foreign in [&b""[..], b"garbage", &[0xff; 500]] {
        store.set(&ledger.totals, foreign, store.get(&ledger.totals).cas);
        assert_eq!(ledger.read(&store).book, Book::default());
    }
    let entry = open(&mut ledger, &store, A, START);
    assert_eq!(requests(&Ledger::new("p", 2), &store, A), 1);
    ledger.close(entry, START);
}

#[test]
fn a_store_that_takes_nothing_leaves_a_worker_its_own_book() {
    struct Full;
    impl Store for Full {
        fn get(&self, _: &[u8]) -> crate::store::Found {
            crate::store::Found::default()
        }
        fn set(&self, _: &[u8], _: &[u8], _: u32) -> bool {
            false
        }
    }
    let mut ledger = Ledger::new("p", 1);
    for now in 0..1_000 {
        let draft = ledger.read(&Full);
        let entry = ledger.open(&Full, draft, job(A), None, at(now));
        ledger.close(entry, at(now));
    }
    let draft = ledger.read(&Full);
    assert_eq!(draft.book.line(A).requests, 0);
    let _entry = ledger.open(&Full, draft, job(A), None, at(1));
    assert_eq!(ledger.read(&Full).book.line(A).requests, 1);
    assert!(ledger.unwritten.len() <= MAX_UNWRITTEN + 2);
}

#[test]
fn a_prompt_that_is_read_elsewhere_counts_there_until_the_first_token() {
    let store = Memory::default();
    let mut ledger = Ledger::new("p", 1);
    let draft = ledger.read(&store);
    let decode = Job { uncached_tokens: 0, prefill_micros: 0, ..job(A) };
    let mut entry = ledger.open(&store, draft, decode, Some(Job { context_tokens: 0, ..job(B) }), START);
    let lines = |ledger: &Ledger| [A, B].map(|endpoint| ledger.read(&store).book.line(endpoint));
    let [generates, reads] = lines(&ledger);
    assert_eq!((generates.requests, generates.prefill_tokens, generates.context_tokens), (1, 0, 1500));
    assert_eq!((reads.requests, reads.prefill_tokens, reads.context_tokens), (1, 1000, 0));
    assert_eq!((generates.wait_seconds(START), reads.wait_seconds(START)), (0.0, 0.04));
    assert_eq!((entry.endpoint(), entry.reader()), (A, B));
    ledger.first_token(&mut entry, true, at(50));
    let [generates, reads] = lines(&ledger);
    assert_eq!((generates.requests, generates.prefilling, generates.context_tokens), (1, 0, 1500));
    assert_eq!(Line { clock: 0, free_at_micros: 0, ..reads }, Line::default());
    ledger.close(entry, at(60));
}

#[test]
fn a_split_request_leaves_nothing_behind_whatever_ends_it() {
    let store = Memory::default();
    let mut ledger = Ledger::new("p", 1);
    let mut split = || {
        let draft = ledger.read(&store);
        ledger.open(&store, draft, job(A), Some(job(B)), START)
    };
    let [mut finished, broken_off, moved] = [split(), split(), split()];
    ledger.first_token(&mut finished, true, at(50));
    ledger.first_token(&mut finished, true, at(60));
    ledger.close(finished, at(900));
    ledger.close(broken_off, at(70));
    let moved = ledger.moved(moved, EndpointId(3), 0, at(80));
    assert_eq!((requests(&ledger, &store, A), requests(&ledger, &store, B)), (0, 1), "its prompt is still read there");
    ledger.close(moved, at(90));
    ledger.tick(&store, at(100));
    for (endpoint, line) in Ledger::new("p", 2).read(&store).book.lines() {
        assert_eq!(Line { clock: 0, free_at_micros: 0, ..*line }, Line::default(), "{endpoint:?}");
    }
}

#[test]
fn the_first_token_of_a_request_with_nothing_to_read_says_nothing_of_the_queue() {
    let store = Memory::default();
    let mut ledger = Ledger::new("p", 1);
    let reading = open(&mut ledger, &store, A, START);
    let draft = ledger.read(&store);
    let mut other = ledger.open(&store, draft, Job { prefill_micros: 0, ..job(A) }, None, START);
    ledger.first_token(&mut other, true, at(30));
    assert_eq!(ledger.read(&store).book.line(A).wait_seconds(at(30)), 0.01);
    ledger.close(other, at(40));
    ledger.close(reading, at(40));
}
