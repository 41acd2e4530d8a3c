//! Requests that may be shed are while the pool is full; no others are.

use serde_json::{Value, json};

use crate::fixture::{CHAT, INFERENCE_PATHS, address, chat, ms, pool, ready, with};
use crate::proxy::{Exchange, Proxy, Request, Server, Worker};

const OBJECTIVE: &str = "x-llm-d-inference-objective";

fn objectives() -> Value {
    with(pool(2), "objectives", json!([{ "name": "batch", "priority": -1 }, { "name": "chat", "priority": 0 }]))
}

/// A proxy whose servers have these queues.
fn queues(configuration: Value, queues: [u32; 2]) -> (Proxy, Worker) {
    let (proxy, worker) = ready(configuration);
    (1..).zip(queues).for_each(|(n, queue)| proxy.server(&address(n), Server::vllm(queue, 8, 0.1)));
    proxy.run_for(ms(300));
    (proxy, worker)
}

fn full(configuration: Value) -> (Proxy, Worker) {
    queues(configuration, [9, 9])
}

fn asks(worker: &Worker, objective: &str) -> Exchange {
    worker.send(Request::post(CHAT).header(OBJECTIVE, objective).body(chat(&["hello"])))
}

#[test]
fn a_full_pool_answers_429_to_what_may_be_shed_and_says_when_to_come_back() {
    let (proxy, worker) = full(objectives());
    let reply = asks(&worker, "batch").reply();
    assert_eq!(reply.status, 429, "and not 500");
    assert_eq!(reply.headers.get("retry-after").unwrap(), b"1");
    assert_eq!(reply.headers.get("x-llm-d-request-dropped-reason").unwrap(), b"rejected-saturated");
    assert_eq!(reply.headers.get("content-type").unwrap(), b"application/json");
    assert_eq!(reply.details, "endpoint_picker_shed");
    assert_eq!(proxy.metric("endpoint_picker_shed_total"), 1);
    assert_eq!(proxy.metric("endpoint_picker_failed_closed_total"), 0, "there were endpoints");
    proxy.run_for(ms(200));
    assert_eq!(proxy.metric("endpoint_picker_requests_in_flight"), 0);
}

#[test]
fn the_error_has_the_shape_of_the_api_that_was_called() {
    let (_proxy, worker) = full(objectives());
    for path in INFERENCE_PATHS {
        let request = Request::post(path).header(OBJECTIVE, "batch").body(chat(&["hello"]));
        let error = worker.send(request).reply_json();
        assert_eq!(error["error"]["type"], "rate_limit_error", "{path}");
        assert_eq!(error["type"] == "error", *path == "/v1/messages", "{path}");
        assert!(error["error"]["message"].is_string());
    }
}

#[test]
fn every_other_request_is_placed_however_full_the_pool_is() {
    let (proxy, worker) = full(objectives());
    for objective in ["chat", "unknown", "", "BATCH"] {
        assert!(asks(&worker, objective).destination().is_some(), "{objective}");
    }
    assert!(worker.post(CHAT, chat(&["hello"])).destination().is_some());
    let garbage = Request::post(CHAT).header(OBJECTIVE, b"\xff\xfe").body(chat(&["hello"]));
    assert!(worker.send(garbage).destination().is_some());
    assert_eq!(proxy.metric("endpoint_picker_shed_total"), 0);
}

#[test]
fn the_older_header_names_the_objective_where_the_newer_is_not_there() {
    let (_proxy, worker) = full(objectives());
    let older = || Request::post(CHAT).header("x-gateway-inference-objective", "batch").body(chat(&["hello"]));
    assert_eq!(worker.send(older()).reply().status, 429);
    assert!(worker.send(older().header(OBJECTIVE, "chat")).destination().is_some());
}

#[test]
fn nothing_is_shed_while_there_is_room_and_again_when_there_is() {
    let (proxy, worker) = queues(objectives(), [9, 0]);
    assert!(asks(&worker, "batch").destination().is_some(), "one server has room");
    proxy.server(&address(2), Server::vllm(1, 8, 0.1));
    proxy.run_for(ms(300));
    assert_eq!(asks(&worker, "batch").reply().status, 429, "9 and 1 queued of 10");
    proxy.server(&address(1), Server::vllm(0, 8, 0.1));
    proxy.run_for(ms(300));
    assert!(asks(&worker, "batch").destination().is_some());
}

#[test]
fn open_failure_does_not_let_through_what_is_shed() {
    let (_proxy, worker) = full(with(objectives(), "failure_mode", json!("fail-open")));
    assert_eq!(asks(&worker, "batch").reply().status, 429);
}

#[test]
fn servers_that_tell_nothing_are_full_or_not_by_policy() {
    for (policy, shed) in [("saturated", true), ("ignore", false)] {
        let detector = json!({ "type": "utilization-detector", "parameters": { "stalenessPolicy": policy } });
        let (proxy, worker) = queues(with(objectives(), "saturation", detector), [0, 0]);
        (1..=2).for_each(|n| proxy.server(&address(n), Server::IsForgotten));
        assert!(asks(&worker, "batch").destination().is_some());
        proxy.run_for(ms(400));
        let request = asks(&worker, "batch");
        assert_eq!(request.sent().is_none(), shed, "{policy}");
        assert!(asks(&worker, "chat").destination().is_some());
    }
}

#[test]
fn a_pool_of_one_sheds_only_what_its_server_has_no_room_for() {
    let (proxy, worker) = ready(with(pool(1), "objectives", json!([{ "name": "batch", "priority": -5 }])));
    for (queue, shed) in [(4, false), (5, true), (0, false)] {
        proxy.server(&address(1), Server::vllm(queue, 8, 0.1));
        proxy.run_for(ms(300));
        assert_eq!(asks(&worker, "batch").sent().is_none(), shed, "{queue}");
    }
    // Not for a moment between two scrapes does it seem full.
    for _ in 0..100 {
        proxy.run_for(ms(7));
        assert!(asks(&worker, "batch").destination().is_some());
    }
}

#[test]
fn what_is_in_flight_fills_a_pool_at_once() {
    let detector = json!({ "type": "concurrency-detector", "parameters": { "maxConcurrency": 3 } });
    let (proxy, worker) = ready(with(objectives(), "saturation", detector));
    let other = proxy.worker();
    proxy.run_for(ms(100));
    let open: Vec<_> = (0..6).map(|_| asks(&worker, "batch")).collect();
    assert!(open.iter().all(|request| request.destination().is_some()));
    assert_eq!(asks(&other, "batch").reply().status, 429, "another worker knows, too");
    open.iter().for_each(Exchange::close);
    proxy.run_for(ms(100));
    assert!(asks(&other, "batch").destination().is_some());
}

#[test]
fn without_objectives_no_header_is_read_and_nothing_is_shed() {
    let calls = |configuration| {
        let (_proxy, worker) = full(configuration);
        let request = asks(&worker, "batch");
        let calls: usize = request.host_calls().values().sum();
        (calls, request.sent().is_some())
    };
    let (without, sent) = calls(pool(2));
    assert!(sent);
    let plain = with(pool(2), "saturation", json!({ "type": "concurrency-detector" }));
    assert_eq!(calls(plain), (without, true), "a detector alone costs a request nothing");
}

#[test]
fn whom_a_request_is_accounted_to_and_what_for_goes_upstream_as_it_came() {
    let (_proxy, worker) = ready(objectives());
    for name in ["x-llm-d-inference-fairness-id", "x-gateway-inference-fairness-id"] {
        for value in [&b"tenant-a"[..], b"\xff\xfe", &[b'x'; 5000]] {
            let request = Request::post(CHAT).header(name, value).header(OBJECTIVE, "batch").body(chat(&["hello"]));
            let sent = worker.send(request).sent().unwrap();
            assert_eq!(sent.headers.get(name).unwrap(), value);
            assert_eq!(sent.headers.get(OBJECTIVE).unwrap(), b"batch");
        }
    }
}
