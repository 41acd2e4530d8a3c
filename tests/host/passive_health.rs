//! A server that fails its requests gets few, whatever the profile, and comes back when it answers again.

use serde_json::{Value, json};

use crate::fixture::{CHAT, address, chat, ms, only, pool, ready, with};
use crate::proxy::{Proxy, Worker};

/// Sends a request and lets the server that gets it answer with what `status` says of its address. Who got it.
fn send(worker: &Worker, status: impl Fn(&str) -> u16) -> String {
    let request = worker.post(CHAT, chat(&["hello"]));
    let picked = request.picked();
    request.answers(status(&picked)).says("data: {}\n\n").finishes();
    picked
}

/// How many of the requests of so many seconds, 20 in each, get to the first endpoint.
fn at_first(proxy: &Proxy, worker: &Worker, seconds: u64, status: impl Fn(&str) -> u16) -> usize {
    let request = |_| {
        proxy.run_for(ms(50));
        send(worker, &status) == address(1)
    };
    (0..20 * seconds).map(request).filter(|first| *first).count()
}

fn broken(status: u16) -> impl Fn(&str) -> u16 {
    move |picked| if picked == address(1) { status } else { 200 }
}

fn profiles() -> Vec<Value> {
    let ready = ["expected-cost", "epp-default", "least-request", "round-robin"].map(Value::from);
    ready.into_iter().chain([json!({ "picker": { "type": "random-picker" } })]).collect()
}

#[test]
fn a_server_that_answers_500_gets_few_requests_and_comes_back_after_it_heals() {
    for profile in profiles() {
        let (proxy, worker) = ready(with(pool(3), "profile", profile.clone()));
        at_first(&proxy, &worker, 1, broken(500));
        let probes = at_first(&proxy, &worker, 30, broken(500));
        assert!((1..=6).contains(&probes), "{probes} with {profile}");
        let healed = at_first(&proxy, &worker, 40, broken(200));
        assert!(healed > 40, "{healed} with {profile}");
        assert_eq!(proxy.metric("endpoint_picker_endpoints_failing"), 0);
    }
}

#[test]
fn a_busy_server_and_one_that_is_asked_for_something_wrong_are_not_broken() {
    for status in [501, 503, 505, 429, 400, 404, 422] {
        let (proxy, worker) = ready(with(pool(3), "profile", json!("round-robin")));
        let there = at_first(&proxy, &worker, 20, broken(status));
        assert!((130..=135).contains(&there), "{there} of 400 with {status}");
    }
}

#[test]
fn where_all_fail_requests_spread_as_before() {
    let (proxy, worker) = ready(with(pool(4), "profile", json!("round-robin")));
    let there = at_first(&proxy, &worker, 20, |_| 500);
    assert!((90..=110).contains(&there), "{there} of 400");
    assert_eq!(proxy.metric("endpoint_picker_endpoints_failing"), 4);
}

#[test]
fn a_client_that_leaves_says_nothing_of_the_server() {
    let (proxy, worker) = ready(with(pool(1), "profile", only("queue-scorer")));
    for _ in 0..20 {
        worker.post(CHAT, chat(&["hello"])).close();
        let streaming = worker.post(CHAT, chat(&["hello"]));
        streaming.answers(200).says("data: {}\n\n");
        streaming.breaks(0x4000);
        proxy.run_for(ms(50));
    }
    assert_eq!(proxy.metric("endpoint_picker_server_failures_total"), 0);
}

#[test]
fn a_server_that_cuts_its_answers_off_is_failing() {
    let (proxy, worker) = ready(with(pool(2), "profile", json!("round-robin")));
    let mut last = String::new();
    for _ in 0..60 {
        let request = worker.post(CHAT, chat(&["hello"]));
        last = request.picked();
        request.answers(200).says("data: {}\n\n");
        if last == address(1) {
            request.breaks(0x40)
        } else {
            request.finishes()
        }
        proxy.run_for(ms(50));
    }
    assert_eq!(proxy.metric("endpoint_picker_endpoints_failing"), 1);
    assert_eq!(last, address(2));
}

#[test]
fn what_the_proxy_answers_for_a_server_counts_at_the_one_it_tried_last() {
    let (proxy, worker) = ready(with(pool(2), "profile", json!("round-robin")));
    for _ in 0..4 {
        let request = worker.post(CHAT, chat(&["hello"]));
        request.fails_at(&request.picked()).finishes();
        worker.post(CHAT, chat(&["hello"])).answered_by(&address(2), 200).finishes();
        proxy.run_for(ms(250));
    }
    assert!(proxy.metric("endpoint_picker_server_failures_total") >= 4);
}

#[test]
fn a_server_whose_requests_all_move_away_is_not_failing_until_one_is_seen_to_fail() {
    let (proxy, worker) = ready(with(pool(3), "profile", json!("round-robin")));
    let mut there = 0;
    for _ in 0..60 {
        let request = worker.post(CHAT, chat(&["hello"]));
        there += u32::from(request.picked() == address(1));
        // A busy server answers 503, and the proxy tries the next.
        let served = if request.picked() == address(1) { address(2) } else { request.picked() };
        request.answered_by(&served, 200).finishes();
        proxy.run_for(ms(50));
    }
    assert_eq!((there, proxy.metric("endpoint_picker_endpoints_failing")), (20, 0));
    while send(&worker, broken(500)) != address(1) {}
    proxy.run_for(ms(300));
    assert_eq!(proxy.metric("endpoint_picker_endpoints_failing"), 1);
}

#[test]
fn one_client_does_not_take_all_servers_but_one_out() {
    let (proxy, worker) = ready(with(pool(4), "profile", json!("round-robin")));
    // Each server has a long stream.
    let streams: Vec<_> = (0..4).map(|_| worker.post(CHAT, chat(&["long"]))).collect();
    streams.iter().for_each(|stream| {
        stream.answers(200).says("data: {}\n\n");
    });
    for _ in 0..12 {
        send(&worker, |picked| if picked == address(4) { 200 } else { 500 });
    }
    proxy.run_for(ms(300));
    assert_eq!(proxy.metric("endpoint_picker_endpoints_failing"), 3);
    let at_last: Vec<_> = (0..10).map(|_| send(&worker, |_| 200) == address(4)).collect();
    assert_eq!(at_last.iter().filter(|last| **last).count(), 5, "half take part");
    at_first(&proxy, &worker, 3, |_| 200);
    assert_eq!(proxy.metric("endpoint_picker_endpoints_failing"), 0, "whatever is in flight");
    assert_eq!(at_first(&proxy, &worker, 2, |_| 200), 10);
}

#[test]
fn slow_readers_do_not_make_a_server_failing() {
    for flag in [0x1_0000, 0x8_0000] {
        let (proxy, worker) = ready(with(pool(2), "profile", json!("round-robin")));
        for _ in 0..8 {
            let stream = worker.post(CHAT, chat(&["long"]));
            stream.answers(200).says("data: {}\n\n");
            stream.breaks(flag);
        }
        proxy.run_for(ms(300));
        assert_eq!(proxy.metric("endpoint_picker_endpoints_failing"), 0);
    }
}

#[test]
fn an_answer_of_a_stranger_says_nothing_of_the_servers() {
    let (proxy, worker) = ready(with(pool(3), "profile", json!("round-robin")));
    for status in [200, 500] {
        for _ in 0..30 {
            proxy.run_for(ms(50));
            worker.post(CHAT, chat(&["hello"])).answered_by("127.0.0.1:15001", status).says("data: {}\n\n").finishes();
        }
    }
    assert_eq!(proxy.metric("endpoint_picker_endpoints_failing"), 0);
    while send(&worker, broken(500)) != address(1) {}
    proxy.run_for(ms(300));
    assert_eq!(proxy.metric("endpoint_picker_endpoints_failing"), 0, "nor makes it suspect");
}

#[test]
fn all_workers_together_send_one_probe_at_a_time() {
    let proxy = Proxy::envoy(with(pool(2), "profile", json!("least-request")));
    proxy.scraper();
    let workers: Vec<_> = (0..4).map(|_| proxy.worker()).collect();
    proxy.run_for(ms(300));
    let mut probes = Vec::new();
    for step in 0..400 {
        for worker in &workers {
            if send(worker, broken(500)) == address(1) && step > 100 {
                probes.push(step);
            }
        }
        proxy.run_for(ms(50));
    }
    assert!((1..=4).contains(&probes.len()), "{probes:?}");
}

#[test]
fn switched_off_it_is_off() {
    let mut configuration = with(pool(2), "profile", json!("round-robin"));
    configuration["pool"]["passive_health"] = json!(false);
    let (proxy, worker) = ready(configuration);
    assert_eq!(at_first(&proxy, &worker, 10, broken(500)), 100);
}
