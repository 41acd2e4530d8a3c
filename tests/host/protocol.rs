//! The endpoint picker protocol: subset hints, the endpoint that served, readiness, errors.

use proxy_wasm::types::Status;
use serde_json::{Value, json};

use crate::fixture::{CHAT, address, chat, ms, pool, ready, with};
use crate::proxy::{Proxy, Request};

/// A list as Envoy 1.40 hands it over.
fn list(elements: &[&str]) -> Vec<u8> {
    let word = |n: usize| (n as u32).to_le_bytes();
    let mut bytes = word(elements.len()).to_vec();
    elements.iter().for_each(|element| bytes.extend([word(element.len()), word(0)].concat()));
    elements.iter().for_each(|element| bytes.extend([element.as_bytes(), b"\0\0"].concat()));
    bytes
}

fn asking(hint: impl Into<Vec<u8>>) -> Request {
    Request::post(CHAT).body(chat(&["hello"])).subset(Ok(hint.into()))
}

#[test]
fn only_endpoints_of_the_subset_are_named() {
    let (_proxy, worker) = ready(with(pool(5), "profile", json!("round-robin")));
    let subset = [address(2), address(4)];
    for hint in [list(&["10.0.0.2:8000", "10.0.0.4:8000"]), b"10.0.0.2:8000,10.0.0.4:8000".to_vec()] {
        for request in [asking(hint.clone()), Request::get("/v1/models").subset(Ok(hint))] {
            for _ in 0..10 {
                let destination = worker.send(request.clone()).destination().unwrap();
                assert!(destination.split(',').all(|named| subset.contains(&named.to_owned())), "{destination}");
            }
        }
    }
}

#[test]
fn the_port_counts() {
    let (_proxy, worker) = ready(pool(2));
    assert_eq!(worker.send(asking("10.0.0.2:8000")).picked(), address(2));
    assert_eq!(worker.send(asking("10.0.0.2:8001")).reply().status, 503);
    assert_eq!(worker.send(asking("10.0.0.2")).picked(), address(2));
}

#[test]
fn a_subset_that_names_nobody_is_refused_whatever_the_failure_mode() {
    for mode in ["fail-open", "fail-close"] {
        let (proxy, worker) = ready(with(pool(2), "failure_mode", json!(mode)));
        let unreadable = Request::post(CHAT).body(chat(&["hello"])).subset(Err(Status::SerializationFailure));
        for request in [asking(""), asking(list(&[])), asking("10.0.0.9:8000"), asking(5f64.to_le_bytes()), unreadable]
        {
            let exchange = worker.send(request);
            let reply = exchange.reply();
            assert_eq!(reply.status, 503);
            assert_eq!(reply.headers.get("x-llm-d-request-dropped-reason").unwrap(), b"rejected-no-endpoints");
            assert_eq!(exchange.reply_json()["error"]["code"], "empty_subset");
        }
        assert_eq!(proxy.metric("endpoint_picker_empty_subset_total"), 5);
    }
    let proxy = Proxy::envoy(with(pool(2), "failure_mode", json!("fail-open")));
    assert_eq!(proxy.worker().send(asking("10.0.0.1:8000")).reply().status, 503, "nor before anything is known");
}

#[test]
fn without_a_hint_or_where_it_is_ignored_all_take_part() {
    let (_proxy, worker) = ready(pool(2));
    let forged =
        Request::post(CHAT).body(chat(&["hello"])).header("x-gateway-destination-endpoint-subset", "10.9.9.9:1");
    assert!(worker.send(forged).destination().is_some(), "a client cannot ask");
    let (_proxy, worker) = ready(with(pool(2), "subset_hint", json!("ignore")));
    assert!(worker.send(asking("10.0.0.9:8000")).destination().is_some());
}

#[test]
fn the_answer_tells_who_served_it_on_request() {
    let name = "x-conformance-test-served-endpoint";
    let (_proxy, worker) = ready(with(pool(2), "served_header", json!(name)));
    let exchange = worker.post(CHAT, chat(&["hello"]));
    exchange.answered_by(&address(2), 200);
    assert_eq!(exchange.response().get(name).unwrap(), address(2).as_bytes());
    let failed = worker.post(CHAT, chat(&["hello"]));
    failed.fails_at(&address(2));
    assert_eq!(failed.response().get(name), None, "nobody served it");

    let (_proxy, worker) = ready(pool(2));
    let exchange = worker.post(CHAT, chat(&["hello"]));
    exchange.answered_by(&address(2), 200);
    assert_eq!(exchange.response().len(), 2);
}

const HEALTH: &str = "/-/endpoint-picker/healthz";

fn healthy() -> Value {
    with(pool(2), "health_path", json!(HEALTH))
}

#[test]
fn ready_is_who_heard_of_a_server_lately() {
    let (proxy, worker) = ready(healthy());
    for request in [Request::get(HEALTH), Request::get(&format!("{HEALTH}?verbose=1")), Request::new("HEAD", HEALTH)] {
        let exchange = worker.send(request);
        assert_eq!((exchange.reply().status, &exchange.reply_json()["status"]), (200, &json!("ready")));
        assert!(exchange.sent().is_none());
    }
    proxy.world().servers.clear();
    proxy.run_for(ms(3_000));
    let exchange = worker.send(Request::get(HEALTH));
    assert_eq!((exchange.reply().status, &exchange.reply_json()["status"]), (503, &json!("stale")));
}

#[test]
fn nobody_is_ready_before_anything_is_known() {
    let worker = Proxy::envoy(healthy()).worker();
    let exchange = worker.send(Request::get(HEALTH));
    assert_eq!(exchange.reply().status, 503);
    assert_eq!(exchange.reply_json(), json!({ "status": "no_snapshot", "pool": "default", "age_ms": null }));
}

#[test]
fn the_health_path_is_never_sent_on_and_belongs_to_the_servers_unless_configured() {
    let (_proxy, worker) = ready(healthy());
    let exchange = worker.send(Request::post(HEALTH).body("{}"));
    assert_eq!(
        (exchange.reply().status, exchange.reply().headers.get("allow").unwrap().as_slice()),
        (405, &b"GET, HEAD"[..])
    );
    assert!(worker.send(Request::get("/-/endpoint-picker/healthz2")).destination().is_some());
    let (_proxy, worker) = ready(pool(2));
    assert!(worker.send(Request::get(HEALTH)).destination().is_some());
}
