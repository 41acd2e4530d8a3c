//! How much of a body is waited for, and that none of it is lost or changed.

use serde_json::json;

use crate::fixture::{CHAT, INFERENCE_PATHS, chat, pool, ready, with};
use crate::proxy::{Request, Status};

fn small_limit() -> serde_json::Value {
    with(pool(2), "request", json!({ "max_body_bytes": 1024 }))
}

#[test]
fn a_body_is_waited_for_to_its_end() {
    let (_proxy, worker) = ready(pool(2));
    let body = chat(&["hello, how are you?"]);
    let (first, second) = body.split_at(20);
    let request = worker.send(Request::post(CHAT).pieces([first]).unfinished());
    assert!(request.is_held());
    request.piece(second);
    assert!(request.is_held());
    request.end();
    assert!(request.destination().is_some());
    assert_eq!(request.sent().unwrap().body, body.as_bytes());
}

#[test]
fn a_long_body_is_decided_on_its_first_part_and_passes_whole() {
    let (_proxy, worker) = ready(small_limit());
    let body = chat(&[&"long ".repeat(1000)]);
    let (first, rest) = body.split_at(1000);
    let (second, rest) = rest.split_at(1000);
    let request = worker.send(Request::post(CHAT).pieces([first]).unfinished());
    assert!(request.is_held());
    request.piece(second);
    assert!(request.destination().is_some());
    request.piece(rest).end();
    assert_eq!(request.sent().unwrap().body, body.as_bytes());
}

#[test]
fn a_body_longer_than_the_proxys_buffer_passes_whole() {
    let (_proxy, worker) = ready(pool(2));
    let body = chat(&[&"x".repeat(3 << 20)]);
    let request = worker.send(Request::post(CHAT).pieces(body.as_bytes().chunks(16 << 10)));
    assert!(request.destination().is_some());
    assert_eq!(request.sent().unwrap().body, body.as_bytes());
}

#[test]
fn a_body_that_ends_with_trailers_is_decided_on_them() {
    let (_proxy, worker) = ready(pool(2));
    let body = chat(&["hello"]);
    let request = worker.send(Request::post(CHAT).pieces([&body]).with_trailers());
    assert!(request.destination().is_some());
    assert_eq!(request.sent().unwrap().body, body.as_bytes());
}

#[test]
fn trailers_after_the_decision_change_nothing() {
    let (_proxy, worker) = ready(small_limit());
    let request = worker.send(Request::post(CHAT).pieces([vec![b'x'; 2000]]).with_trailers());
    assert!(request.destination().is_some());
    assert_eq!(request.sent().unwrap().body.len(), 2000);
}

#[test]
fn a_compressed_body_is_not_waited_for() {
    let (_proxy, worker) = ready(pool(2));
    for encoding in ["gzip", "br", "GZIP", "\u{0}"] {
        let request = Request::post(CHAT).header("content-encoding", encoding).pieces([b"\x1f\x8b\x08"]).unfinished();
        assert!(worker.send(request).destination().is_some(), "{encoding}");
    }
    let request = Request::post(CHAT).header("content-encoding", "identity").pieces(["{"]).unfinished();
    assert!(worker.send(request).is_held());
}

#[test]
fn no_body_is_too_strange_to_be_placed() {
    let (_proxy, worker) = ready(pool(2));
    let nested = "[".repeat(200) + &"]".repeat(200);
    let bodies: Vec<Vec<u8>> = vec![
        b"".to_vec(),
        b"{".to_vec(),
        b"[]".to_vec(),
        b"null".to_vec(),
        b"not json".to_vec(),
        vec![0xff; 300],
        b"{\"model\":\"\xff\xfe\",\"messages\":[{\"role\":\"\xff\",\"content\":\"\xc3\x28\"}]}".to_vec(),
        br#"{"model":5,"messages":"x","prompt":{},"input":7,"tools":1,"system":[3],"text":null}"#.to_vec(),
        br#"{"model":null,"messages":[1,null,[],{"role":[],"content":{"type":3}}],"stream":"yes"}"#.to_vec(),
        nested.clone().into_bytes(),
        format!(r#"{{"messages":{nested},"prompt":{nested},"input":{nested}}}"#).into_bytes(),
    ];
    for path in INFERENCE_PATHS {
        for body in &bodies {
            let request = worker.post(path, body);
            assert!(request.destination().is_some(), "{path}: {}", String::from_utf8_lossy(body));
            assert_eq!(request.sent().unwrap().body, *body);
        }
    }
}

#[test]
fn a_proxy_that_sent_the_headers_on_is_noticed_and_the_request_still_goes() {
    let (proxy, worker) = ready(pool(2));
    let body = chat(&["hello"]);
    let request = worker.send(Request::post(CHAT).pieces([&body]).unfinished());
    proxy.world().faults.change = Some(Status::BadArgument);
    request.end();
    assert_eq!(request.destination(), None);
    assert_eq!(request.sent().unwrap().body, body.as_bytes());
    assert_eq!(proxy.metric("endpoint_picker_destination_refused_total"), 1);
    assert!(proxy.logged("allow_on_headers_stop_iteration"));
}

#[test]
fn a_body_that_the_proxy_will_not_hold_is_refused_by_it_and_forgotten() {
    // The limit was set above the proxy's own.
    let (_proxy, worker) = ready(with(pool(2), "request", json!({ "max_body_bytes": 16 << 20 })));
    let request = worker.send(Request::post(CHAT).pieces([vec![b' '; 1 << 20], vec![b' '; 1 << 20]]).unfinished());
    assert_eq!(request.reply().status, 413);
    request.close();
    assert!(worker.post(CHAT, chat(&["hello"])).destination().is_some());
}
