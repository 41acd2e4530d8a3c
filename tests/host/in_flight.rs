//! Each request is counted at its endpoint from the pick to the end of its stream, once.

use crate::fixture::{CHAT, address, chat, ms, only, pool, ready, with};
use crate::proxy::{Exchange, Proxy, Request, Worker};

/// Two endpoints, and only what is in flight counts.
fn ledger() -> (Proxy, Worker) {
    ready(with(pool(2), "profile", only("active-request-scorer")))
}

fn open(worker: &Worker) -> Exchange {
    worker.post(CHAT, chat(&["hello"]))
}

/// Each endpoint has two requests; one of the first endpoint's ends. Then one more makes it even again, and two more
/// keep it even: had the count fallen twice or not at all, one of these picks would differ in half of the rounds.
fn falls_once(ending: impl Fn(&Worker, Exchange)) {
    let (_proxy, worker) = ledger();
    for round in 0..16 {
        let mut requests: Vec<_> = (0..4).map(|_| open(&worker)).collect();
        let ends = requests.iter().position(|request| request.picked() == address(1)).unwrap();
        ending(&worker, requests.remove(ends));
        let more: Vec<_> = (0..3).map(|_| open(&worker)).collect();
        let picked: Vec<_> = more.iter().map(Exchange::picked).collect();
        assert_eq!(picked[0], address(1), "round {round}: {picked:?}");
        assert_ne!(picked[1], picked[2], "round {round}: {picked:?}");
    }
}

#[test]
fn the_count_falls_once_when_the_answer_ends() {
    falls_once(|_, request| request.answers(200).says("data: {}\n\n").finishes());
}

#[test]
fn the_count_falls_once_when_the_answer_is_an_error() {
    falls_once(|_, request| request.answers(500).says("{}").finishes());
}

#[test]
fn the_count_falls_once_when_the_client_leaves_before_the_answer() {
    falls_once(|_, request| request.close());
}

#[test]
fn the_count_falls_once_when_the_client_leaves_mid_stream() {
    falls_once(|_, request| request.answers(200).says("data: {}\n\n").close());
}

#[test]
fn the_count_falls_once_when_the_proxy_answers_for_the_upstream() {
    falls_once(|_, request| {
        request.answers_with(&[(":status", b"503")]).says("upstream connect error").finishes();
    });
}

#[test]
fn a_request_is_counted_until_its_stream_is_gone() {
    falls_once(|worker, request| {
        request.answers(200).says("data: {}\n\n");
        // Two here, two there: the next two go one to each.
        let next = [open(worker), open(worker)];
        assert_ne!(next[0].picked(), next[1].picked());
        request.finishes();
    });
}

#[test]
fn a_client_that_leaves_while_its_body_is_read_was_never_counted() {
    let (_proxy, worker) = ledger();
    for _ in 0..16 {
        let held = worker.send(Request::post(CHAT).pieces(["{"]).unfinished());
        assert!(held.is_held());
        let requests = [open(&worker), open(&worker)];
        held.close();
        let more = [open(&worker), open(&worker)];
        assert_ne!(requests[0].picked(), requests[1].picked());
        assert_ne!(more[0].picked(), more[1].picked());
    }
}

#[test]
fn a_request_that_was_answered_here_was_never_counted() {
    let proxy = Proxy::envoy(with(pool(2), "profile", only("active-request-scorer")));
    let worker = proxy.worker();
    let refused = [open(&worker), open(&worker), open(&worker)];
    assert!(refused.iter().all(|request| request.reply().status == 503));
    proxy.scraper();
    proxy.run_for(ms(300));
    drop(refused);
    for _ in 0..16 {
        let requests = [open(&worker), open(&worker)];
        assert_ne!(requests[0].picked(), requests[1].picked());
    }
}

#[test]
fn a_request_that_a_retry_moved_is_counted_where_it_is_served() {
    let (proxy, worker) = ledger();
    for round in 0..16 {
        let mut requests = [open(&worker), open(&worker)];
        requests.sort_by_key(Exchange::picked);
        // Now both are at the second endpoint.
        requests[0].answered_by(&address(2), 200);
        let next = [open(&worker), open(&worker)];
        assert!(next.iter().all(|request| request.picked() == address(1)), "round {round}");
        requests[0].finishes();
        let more = open(&worker);
        assert_eq!(more.picked(), address(2), "round {round}");
    }
    assert_eq!(proxy.metric("endpoint_picker_served_elsewhere_total"), 16);
}

#[test]
fn a_request_served_by_a_stranger_is_still_closed() {
    falls_once(|_, request| request.answered_by("192.0.2.1:80", 200).says("data: {}\n\n").finishes());
}

#[test]
fn what_a_crashed_worker_had_in_flight_stops_counting_within_two_seconds() {
    let (proxy, worker) = ledger();
    proxy.run_for(ms(1_000));
    let lost: Vec<_> = (0..5).map(|_| open(&worker)).collect();
    let reloaded = proxy.worker();
    worker.traps();
    drop(lost);
    // 3 on one, 2 on the other: the sixth goes to the lesser.
    let sixth = open(&reloaded);
    proxy.run_for(ms(2_000));
    for _ in 0..16 {
        let requests = [open(&reloaded), open(&reloaded), open(&reloaded)];
        let at = |picked: &str| requests.iter().filter(|request| request.picked() == picked).count();
        assert_eq!(at(&sixth.picked()), 1, "only the sixth is still in flight");
    }
}

#[test]
fn workers_see_at_once_what_the_others_sent() {
    let (proxy, first) = ledger();
    let second = proxy.worker();
    proxy.run_for(ms(100));
    let mut open_requests = Vec::new();
    for round in 0..10 {
        let pair = [open(&first), open(&second)];
        assert_ne!(pair[0].picked(), pair[1].picked(), "round {round}");
        open_requests.extend(pair);
    }
}

#[test]
fn an_error_that_the_proxy_made_up_was_served_by_nobody() {
    let (proxy, worker) = ledger();
    let request = open(&worker);
    let other = if request.picked() == address(1) { address(2) } else { address(1) };
    request.fails_at(&other).finishes();
    assert_eq!(proxy.metric("endpoint_picker_served_elsewhere_total"), 0);
}
