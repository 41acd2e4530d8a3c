//! When the servers are expected to have read what they were sent.

use serde_json::{Value, json};

use crate::fixture::{CHAT, chat, ms, pool, ready, with};
use crate::proxy::{Exchange, Proxy, Request, Worker};

const EVENTS: &[(&str, &[u8])] = &[(":status", b"200"), ("content-type", b"text/event-stream")];

/// One server, and each answer says what was expected of it.
fn explained(setting: &str, value: Value) -> (Proxy, Worker) {
    ready(with(with(pool(1), "explain", json!("header")), setting, value))
}

fn streamed(words: usize) -> String {
    json!({ "messages": [{ "role": "user", "content": "word ".repeat(words) }], "stream": true }).to_string()
}

/// Lets the first token of a request come. Why its server was picked.
fn begins(request: &Exchange) -> String {
    request.answers_with(EVENTS).says("data: {\"choices\":[{\"delta\":{}}]}\n\n");
    let why = request.response().get("x-endpoint-picker-decision").unwrap_or_default();
    String::from_utf8(why).unwrap()
}

#[test]
fn a_prompt_whose_answer_is_no_stream_is_not_waited_for_while_it_is_generated() {
    let long = "word ".repeat(40_000);
    for (first, waits) in [(chat(&[&long]), false), (streamed(40_000), true)] {
        let (proxy, worker) = explained("request", json!({}));
        // It takes about three seconds to read.
        let _generating = worker.post(CHAT, first);
        proxy.run_for(ms(20_000));
        let second = worker.post(CHAT, streamed(1_000));
        proxy.run_for(ms(100));
        begins(&second);
        let third = worker.post(CHAT, streamed(1_000));
        let why = begins(&third);
        assert_eq!(why.contains("wait"), waits, "{why}");
    }
}

#[test]
fn a_slow_upload_does_not_make_a_server_seem_slow() {
    let (proxy, worker) = explained("request", json!({ "max_body_bytes": 1024 }));
    let prompt = streamed(150);
    let ask = || begins(&worker.post(CHAT, &prompt));
    // The second time it is cached as far as it will be.
    let [_, before] = [ask(), ask()];
    for at in 1..=40 {
        let length = (20_000 * at).to_string();
        let upload = Request::post(CHAT).header("content-length", length).pieces([streamed(400)]).unfinished();
        let upload = worker.send(upload);
        proxy.run_for(ms(500 * at));
        begins(&upload);
        upload.finishes();
    }
    proxy.run_for(ms(1_000));
    assert_eq!(ask(), before);
}
