//! What a client gets when nothing can be picked.

use serde_json::json;

use crate::fixture::{CHAT, INFERENCE_PATHS, address, chat, ms, pool, ready, with};
use crate::proxy::{Proxy, Request, Server};

fn open() -> Proxy {
    Proxy::envoy(with(pool(3), "failure_mode", json!("fail-open")))
}

#[test]
fn closed_it_is_an_error_that_says_when_to_come_back() {
    let proxy = Proxy::envoy(pool(3));
    let worker = proxy.worker();
    for request in [Request::get("/v1/models"), Request::post(CHAT).body(chat(&["hello"]))] {
        let exchange = worker.send(request);
        assert!(exchange.sent().is_none());
        let reply = exchange.reply();
        assert_eq!(reply.status, 503);
        assert_eq!(reply.headers.get("retry-after").unwrap(), b"1");
        assert_eq!(reply.headers.get("content-type").unwrap(), b"application/json");
        assert_eq!(reply.details, "endpoint_picker_no_endpoint");
    }
    assert_eq!(proxy.metric("endpoint_picker_no_snapshot_total"), 2);
    assert_eq!(proxy.metric("endpoint_picker_failed_closed_total"), 2);
}

#[test]
fn the_error_has_the_shape_of_the_api_that_was_called() {
    let proxy = Proxy::envoy(pool(3));
    let worker = proxy.worker();
    for path in INFERENCE_PATHS {
        let error = worker.post(path, chat(&["hello"])).reply_json();
        if *path == "/v1/messages" {
            assert_eq!((&error["type"], &error["error"]["type"]), (&json!("error"), &json!("overloaded_error")));
        } else {
            assert_eq!(error["error"]["code"], "no_snapshot", "{path}: {error}");
            assert_eq!(error["error"]["type"], "service_unavailable");
        }
        assert!(error["error"]["message"].is_string());
    }
}

#[test]
fn open_it_goes_where_the_proxy_sends_it() {
    let proxy = open();
    let worker = proxy.worker();
    for request in [
        Request::get("/v1/models"),
        Request::post(CHAT).header("content-length", "0"),
        Request::post(CHAT).pieces([chat(&["hello"])]).with_trailers(),
    ] {
        assert_eq!(worker.send(request).destination(), None);
    }
    let body = chat(&["hello"]);
    let exchange = worker.post(CHAT, &body);
    assert_eq!(exchange.destination(), None);
    assert_eq!(exchange.sent().unwrap().body, body.as_bytes());
    exchange.answered_by(&address(1), 200).says("data: {}\n\n").finishes();
    assert_eq!(proxy.metric("endpoint_picker_failed_open_total"), 4);
}

#[test]
fn a_plugin_that_was_never_configured_lets_requests_through() {
    let proxy = Proxy::envoy("");
    let worker = proxy.load("picker", "");
    for request in [Request::get("/v1/models"), Request::post(CHAT).pieces([chat(&["hello"])]).with_trailers()] {
        let exchange = worker.send(request);
        assert_eq!(exchange.destination(), None);
        exchange.answered_by(&address(1), 200).finishes();
    }
}

#[test]
fn a_pool_whose_servers_all_seem_dead_is_still_tried() {
    let (proxy, worker) = ready(pool(3));
    (1..=3).for_each(|n| proxy.server(&address(n), Server::Refuses));
    proxy.run_for(ms(10_000));
    assert_eq!(proxy.metric("endpoint_picker_endpoints_unreachable"), 3);
    assert!(worker.post(CHAT, chat(&["hello"])).destination().is_some());
}

#[test]
fn a_server_that_seems_dead_gets_nothing_while_others_live() {
    let (proxy, worker) = ready(pool(3));
    proxy.server(&address(2), Server::Refuses);
    proxy.run_for(ms(1_000));
    let requests: Vec<_> = (0..30).map(|n| worker.post(CHAT, chat(&[&n.to_string()]))).collect();
    assert!(requests.iter().all(|request| request.picked() != address(2)));
}

#[test]
fn the_pool_is_used_long_after_the_last_news() {
    let (proxy, worker) = ready(pool(3));
    proxy.world().servers.values_mut().for_each(|server| *server = Server::IsForgotten);
    proxy.run_for(ms(60_000));
    assert!(worker.post(CHAT, chat(&["hello"])).destination().is_some());
}
