//! When an endpoint is expected to have read its prompts.

use super::*;

#[test]
fn an_idle_endpoint_is_not_shunned_after_the_clock_stepped_back() {
    let store = Memory::default();
    let mut ledger = Ledger::new("p", 1);
    let mut entry = open(&mut ledger, &store, A, START);
    ledger.first_token(&mut entry, true, at(40));
    ledger.close(entry, at(50));
    let back = Timestamp(START.0 - 3_600_000);
    let wait =
        |ledger: &Ledger, ms| ledger.read(&store).book.line(A).wait_seconds(back.plus(Duration::from_millis(ms)));
    assert_eq!(wait(&ledger, 0), 0.0);
    let one = open(&mut ledger, &store, A, back);
    let two = open(&mut ledger, &store, A, back);
    assert_eq!(wait(&ledger, 0), 0.08, "its queue is what was sent there");
    assert_eq!(wait(&ledger, 30), 0.05, "and is being read");
    ledger.close(one, back);
    ledger.close(two, back);
}

#[test]
fn a_request_that_ends_without_a_token_does_not_set_the_queue_back() {
    let store = Memory::default();
    let mut ledger = Ledger::new("p", 1);
    let long = Job { prefill_micros: 10_000_000, ..job(A) };
    let reading = ledger.open(&store, ledger.read(&store), long, None, START);
    let wait = |ledger: &Ledger, ms| ledger.read(&store).book.line(A).wait_seconds(at(ms));
    // One that was cancelled, one that was refused, and one without a prompt.
    let cancelled = open(&mut ledger, &store, A, START);
    let mut refused = open(&mut ledger, &store, A, START);
    let mut get = ledger.open(&store, ledger.read(&store), Job { endpoint: A, ..Job::default() }, None, START);
    ledger.close(cancelled, at(9_000));
    ledger.first_token(&mut refused, false, at(9_000));
    ledger.first_token(&mut get, false, at(9_000));
    assert!(wait(&ledger, 9_000) <= 1.08, "{}", wait(&ledger, 9_000));
    for entry in [reading, refused, get] {
        ledger.close(entry, at(9_100));
    }
    assert_eq!(wait(&ledger, 9_100), 0.0);
}

#[test]
fn a_prompt_whose_answer_comes_as_a_whole_waits_no_longer_than_reckoned() {
    let store = Memory::default();
    let mut ledger = Ledger::new("p", 1);
    let whole = Job { streams: false, ..job(A) };
    let mut generating = ledger.open(&store, ledger.read(&store), whole, None, START);
    ledger.tick(&store, at(20));
    assert_eq!(ledger.read(&store).book.line(A).prefilling, 1, "it is being read");
    ledger.tick(&store, at(40));
    let line = ledger.read(&store).book.line(A);
    assert_eq!((line.requests, line.prefilling, line.prefill_tokens, line.context_tokens), (1, 0, 0, 1500));
    // The first token of another one does not bring it back.
    let mut other = open(&mut ledger, &store, A, at(1_000));
    ledger.first_token(&mut other, true, at(1_040));
    assert_eq!(ledger.read(&store).book.line(A).wait_seconds(at(1_040)), 0.0);
    ledger.first_token(&mut generating, false, at(2_000));
    for entry in [generating, other] {
        ledger.close(entry, at(2_000));
    }
    let line = ledger.read(&store).book.line(A);
    assert_eq!(Line { clock: 0, free_at_micros: 0, ..line }, Line::default());
}

#[test]
fn answers_that_come_as_a_whole_leave_nothing_behind_whatever_ends_them() {
    let store = Memory::default();
    for ms in [10, 40, 2_000] {
        let mut ledger = Ledger::new("p", 1);
        let mut split = || {
            let (draft, whole) = (ledger.read(&store), Job { streams: false, ..job(A) });
            ledger.open(&store, draft, whole, Some(job(B)), START)
        };
        let [mut finished, broken_off, moved] = [split(), split(), split()];
        ledger.tick(&store, at(ms));
        ledger.first_token(&mut finished, false, at(ms));
        let moved = ledger.moved(moved, EndpointId(3), 0, at(ms));
        for entry in [finished, broken_off, moved] {
            ledger.close(entry, at(ms));
        }
        ledger.tick(&store, at(ms));
        for (endpoint, line) in ledger.read(&store).book.lines() {
            assert_eq!(Line { clock: 0, free_at_micros: 0, ..*line }, Line::default(), "{endpoint:?}, {ms} ms");
        }
        assert!(ledger.unseen.is_empty());
    }
}
