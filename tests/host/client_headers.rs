//! Headers are the client's to write, and so are not to be trusted.

use serde_json::json;

use crate::fixture::{CHAT, chat, pool, ready, with};
use crate::proxy::{Proxy, Request};

const EVIL: &str = "169.254.169.254:80";

/// Every way to ask for an endpoint, on every kind of request.
fn spoofed() -> Vec<Request> {
    let requests = [
        Request::get("/v1/models"),
        Request::post(CHAT).body(chat(&["hello"])),
        Request::post(CHAT).body("{ not json"),
        Request::post(CHAT).header("content-length", "0"),
        Request::post(CHAT).pieces(["{}"]).with_trailers(),
        Request::post("/other").body("x"),
        Request::new("\u{1}", "\u{2}"),
    ];
    let destination = "x-gateway-destination-endpoint";
    requests
        .into_iter()
        .flat_map(|request| {
            [
                request.clone().header(destination, EVIL),
                request.clone().header("X-Gateway-Destination-Endpoint", EVIL),
                request.header(destination, EVIL).header(destination, b"\xff\xfe"),
            ]
        })
        .collect()
}

#[test]
fn a_client_cannot_choose_the_endpoint() {
    let (_proxy, worker) = ready(pool(3));
    for request in spoofed() {
        let destination = worker.send(request.clone()).destination().unwrap();
        assert!(destination.starts_with("10.0.0."), "{destination} by {request:?}");
        assert!(!destination.contains(EVIL), "{destination} by {request:?}");
    }
}

#[test]
fn nor_when_nothing_can_be_picked() {
    let open = Proxy::envoy(with(pool(3), "failure_mode", json!("fail-open")));
    let unconfigured = Proxy::envoy("");
    for worker in [open.worker(), unconfigured.load("picker", "")] {
        for request in spoofed() {
            assert_eq!(worker.send(request.clone()).destination(), None, "{request:?}");
        }
    }
}

#[test]
fn bytes_that_are_no_text_are_harmless_in_every_header() {
    let (_proxy, worker) = ready(pool(3));
    for bytes in [&b"\xff\xfe"[..], b"\xa1", b"a\x80b", b"\xc3\x28", b"", &[0xf0; 8192]] {
        for name in ["content-length", "content-encoding", "content-type", "user-agent", "x-forwarded-for", "host"] {
            let request = Request::post(CHAT).header(name, bytes).pieces([chat(&["hello"])]);
            assert!(worker.send(request).destination().is_some(), "{name}: {bytes:?}");
        }
        let path = [b"/v1/chat/completions".as_slice(), bytes].concat();
        assert!(worker.send(Request::new("POST", path).body(chat(&["hello"]))).destination().is_some(), "{bytes:?}");
    }
}

#[test]
fn bytes_that_are_no_text_are_harmless_in_the_answer() {
    let (_proxy, worker) = ready(pool(3));
    let request = worker.post(CHAT, chat(&["hello"]));
    request.answers_with(&[(":status", b"\xff"), ("content-type", b"\xa1"), ("server", b"\xfe\xff")]);
    request.says("data: {}\n\n").finishes();
}

#[test]
fn lengths_that_cannot_be_are_harmless() {
    let (_proxy, worker) = ready(pool(3));
    for length in ["-1", "1e9", "18446744073709551615", "99999999999999999999999", " 12 ", "0x10"] {
        let request = Request::post(CHAT).header("content-length", length).pieces([chat(&["hello"])]);
        assert!(worker.send(request).destination().is_some(), "{length}");
    }
}
