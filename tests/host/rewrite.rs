//! Requests that go to another model than their clients name.

use serde_json::{Value, json};

use crate::fixture::{CHAT, INFERENCE_PATHS, chat, only, pool, ready, with};
use crate::proxy::{Exchange, Proxy, Request, Status, Worker};

const HEADER: &str = "x-llm-d-model-name-rewrite";
const JSON: &[(&str, &[u8])] = &[(":status", b"200"), ("content-type", b"application/json"), ("content-length", b"99")];
const STREAM: &[(&str, &[u8])] = &[(":status", b"200"), ("content-type", b"text/event-stream")];

/// Clients know `m`; the servers know it as this.
const TARGET: &str = "org/llama-7b";

fn rules() -> Value {
    json!([{ "model": "m", "targets": [{ "model": TARGET }] }, { "model": "long-name", "targets": [{ "model": "x" }] }])
}

fn rewriting() -> (Proxy, Worker) {
    ready(with(pool(2), "model_rewrites", rules()))
}

fn renamed(body: &str) -> String {
    body.replace("\"model\":\"m\"", "\"model\":\"org/llama-7b\"")
}

fn body(request: &Exchange) -> String {
    String::from_utf8(request.sent().unwrap().body).unwrap()
}

fn header(request: &Exchange, name: &str) -> Option<String> {
    request.sent().unwrap().headers.get(name).map(|value| String::from_utf8(value).unwrap())
}

#[test]
fn the_server_gets_the_target_in_a_body_whose_length_is_right() {
    let (proxy, worker) = rewriting();
    for path in INFERENCE_PATHS {
        let request = worker.send(Request::post(path).header("accept-encoding", "gzip").body(chat(&["hello"])));
        assert_eq!(body(&request), renamed(&chat(&["hello"])));
        assert_eq!(header(&request, "content-length").unwrap(), body(&request).len().to_string());
        assert_eq!(header(&request, HEADER).unwrap(), TARGET);
        assert_eq!(header(&request, "accept-encoding"), None, "a compressed answer could not be restored");
        assert!(request.destination().is_some());
    }
    assert_eq!(proxy.metric("endpoint_picker_rewritten_total"), INFERENCE_PATHS.len() as u64);
}

#[test]
fn a_shorter_name_and_a_body_of_undeclared_length_go_on_right_too() {
    let (_proxy, worker) = rewriting();
    let request = worker.post(CHAT, r#"{"model":"long-name"}"#);
    assert_eq!((body(&request), header(&request, "content-length")), (r#"{"model":"x"}"#.into(), Some("13".into())));
    for trailers in [false, true] {
        let request = Request::post(CHAT).pieces(["{\"mod", "el\":\"m\"", "}"]);
        let request = worker.send(if trailers { request.with_trailers() } else { request });
        assert_eq!(body(&request), renamed(r#"{"model":"m"}"#));
        assert_eq!(header(&request, "content-length"), None);
    }
}

#[test]
fn a_long_body_is_rewritten_as_far_as_it_is_read_and_passes_whole() {
    let (_proxy, worker) =
        ready(with(with(pool(2), "model_rewrites", rules()), "request", json!({ "max_body_bytes": 1024 })));
    let text = format!(r#"{{"model":"m","prompt":"{}","model":"m"}}"#, "long ".repeat(1000));
    let expected = text.replacen("\"m\"", "\"org/llama-7b\"", 1);
    let (first, rest) = text.split_at(1000);
    let (second, third) = rest.split_at(2000);
    let parts = [first, second, third];
    let request = Request::post(CHAT).header("content-length", text.len().to_string()).pieces(parts);
    for request in [request, Request::post(CHAT).body(&text)] {
        let request = worker.send(request);
        assert_eq!(body(&request), expected);
        assert_eq!(header(&request, "content-length").unwrap(), expected.len().to_string());
    }
}

#[test]
fn what_no_rule_is_for_goes_on_as_it_came() {
    let (proxy, worker) = rewriting();
    for text in [r#"{"model":"other"}"#, r#"{"model":"org/llama-7b"}"#] {
        let request = worker.send(Request::post(CHAT).header("accept-encoding", "gzip").body(text));
        assert_eq!(body(&request), text);
        assert_eq!(header(&request, HEADER), None);
        assert_eq!(header(&request, "accept-encoding").unwrap(), "gzip");
        request.answers_with(JSON).says(r#"{"model":"org/llama-7b"}"#);
        let (headers, text) = request.received();
        assert_eq!((headers.get("content-length").unwrap(), &*text), (b"99".to_vec(), r#"{"model":"org/llama-7b"}"#));
    }
    assert_eq!(proxy.metric("endpoint_picker_not_rewritten_total"), 0);
    assert_eq!(proxy.metric("endpoint_picker_rewritten_total"), 0);
}

#[test]
fn a_body_that_shows_no_model_goes_on_and_is_counted() {
    let (proxy, worker) = rewriting();
    for text in ["", "{", "[]", "null", r#"{"model":5}"#, r#"{"messages":[{"model":"m"}]}"#, "\u{0}"] {
        let request = worker.post(CHAT, text);
        assert_eq!(body(&request), text);
    }
    let compressed = worker.send(Request::post(CHAT).header("content-encoding", "gzip").body("\x1f\u{8b}"));
    assert_eq!(body(&compressed), "\x1f\u{8b}");
    assert_eq!(proxy.metric("endpoint_picker_not_rewritten_total"), 8);
    worker.get("/v1/models");
    worker.post("/tokenize", r#"{"model":"m"}"#);
    assert_eq!(proxy.metric("endpoint_picker_not_rewritten_total"), 8, "no inference");
}

#[test]
fn a_client_does_not_choose_the_target_where_rules_do() {
    let (_proxy, worker) = rewriting();
    let names = [HEADER, "x-gateway-model-name-rewrite", "X-LLM-D-Model-Name-Rewrite"];
    for name in names {
        for request in [Request::get("/v1/models"), Request::post(CHAT).body(r#"{"model":"other"}"#)] {
            assert_eq!(header(&worker.send(request.header(name, "evil")), name), None);
        }
        let request = worker.send(Request::post(CHAT).header(name, "evil").body(chat(&["hello"])));
        assert_eq!(header(&request, HEADER).unwrap(), TARGET);
    }
    let (_proxy, worker) = ready(pool(2));
    let request = worker.send(Request::get("/v1/models").header(HEADER, "whatever"));
    assert_eq!(header(&request, HEADER).unwrap(), "whatever", "without rules it is not ours");
}

#[test]
fn a_canary_gets_its_share_and_a_request_the_same_target_each_time() {
    let targets = json!([{ "model": "stable", "weight": 3 }, { "model": "canary", "weight": 1 }]);
    let (_proxy, worker) = ready(with(pool(2), "model_rewrites", json!([{ "targets": targets }])));
    let target = |id: &str| {
        let request = Request::post(CHAT).body(chat(&["hello"]));
        let request = if id.is_empty() { request } else { request.header("x-request-id", id) };
        header(&worker.send(request), HEADER).unwrap()
    };
    let by_id: Vec<_> = (0..200).map(|n| target(&format!("id-{n}"))).collect();
    let canaries = by_id.iter().filter(|target| *target == "canary").count();
    assert!((25..75).contains(&canaries), "{canaries} of 200");
    assert!((0..200).all(|n| target(&format!("id-{n}")) == by_id[n]));
    let by_chance = (0..200).filter(|_| target("") == "canary").count();
    assert!((15..90).contains(&by_chance), "{by_chance} of 200");
}

#[test]
fn the_pick_is_made_for_the_target() {
    let configuration = with(with(pool(4), "model_rewrites", rules()), "profile", only("prefix-cache-scorer"));
    let (_proxy, worker) = ready(configuration);
    let prompt = chat(&[&"word ".repeat(800)]);
    let home = worker.post(CHAT, renamed(&prompt)).picked();
    for _ in 0..12 {
        assert_eq!(
            worker.post(CHAT, &prompt).picked(),
            home,
            "what one name brought into the cache is not found by the other"
        );
    }
}

#[test]
fn an_answer_names_the_model_as_the_client_did_however_it_is_cut() {
    let (_proxy, worker) = rewriting();
    let json = r#"{"model":"org/llama-7b","choices":[{"message":{"content":"\"model\":\"org/llama-7b\""},"model":"org/llama-7b"}]}"#;
    let stream = format!("data: {json}\n\ndata: {json}\n\ndata: [DONE]\n\n");
    for (headers, answer, path) in [(JSON, json, CHAT), (JSON, json, "/v1/embeddings"), (STREAM, &stream, CHAT)] {
        let expected = answer.replace("{\"model\":\"org/llama-7b\"", "{\"model\":\"m\"");
        for at in 0..answer.len() {
            let request = worker.post(path, chat(&["hello"]));
            let (one, other) = answer.split_at(at);
            request.answers_with(headers).says(one).says(other).says_no_more();
            let (headers, text) = request.received();
            assert_eq!(text, expected, "cut at {at}");
            assert_eq!(headers.get("content-length"), None, "it would be wrong");
        }
    }
}

#[test]
fn an_answer_that_breaks_off_comes_as_far_as_it_got() {
    let (_proxy, worker) = rewriting();
    for text in [r#"{"model":"org/lla"#, r#"{"model":"org/llama-7b"#, r#"{"model":"#] {
        let request = worker.post(CHAT, chat(&["hello"]));
        text.chars().fold(request.answers_with(JSON), |request, byte| request.says(&byte.to_string())).says_no_more();
        assert_eq!(request.received().1, text);
    }
}

#[test]
fn an_answer_that_cannot_be_read_passes_with_its_length() {
    let (_proxy, worker) = rewriting();
    let text = r#"{"model":"org/llama-7b"}"#;
    let length = ("content-length", &b"24"[..]);
    for headers in [
        vec![("content-type", &b"application/json"[..]), ("content-encoding", b"gzip"), length],
        vec![("content-type", b"text/html"), length],
        vec![("content-type", b"\xff\xfe"), length],
        vec![length],
    ] {
        let request = worker.post(CHAT, chat(&["hello"]));
        request.answers_with(&headers).says(text).says_no_more();
        let (headers, received) = request.received();
        assert_eq!((headers.get("content-length").unwrap(), &*received), (b"24".to_vec(), text));
    }
}

#[test]
fn a_target_that_nobody_serves_is_answered_by_the_server_and_noticed() {
    let (proxy, worker) = rewriting();
    let request = worker.post(CHAT, chat(&["hello"]));
    let text =
        r#"{"object":"error","message":"The model `org/llama-7b` does not exist.","model":"org/llama-7b","code":404}"#;
    request.answers_with(&[(":status", b"404"), ("content-type", b"application/json")]).says(text).says_no_more();
    assert_eq!(request.received().1, text.replace("\"org/llama-7b\"", "\"m\""), "where the text names it, it stays");
    assert_eq!(proxy.metric("endpoint_picker_rewrite_targets_unknown_total"), 1);
    assert!(proxy.logged("404 to the target \"org/llama-7b\""));
}

#[test]
fn what_the_proxy_does_not_let_change_goes_on_as_it_came() {
    let (proxy, worker) = rewriting();
    let text = chat(&["hello"]);
    let unchanged = |request: &Exchange| {
        assert_eq!(body(request), text);
        assert_eq!(header(request, "content-length").unwrap(), text.len().to_string());
        assert_eq!(header(request, HEADER), None);
        request.answers_with(JSON).says(r#"{"model":"org/llama-7b"}"#);
        assert_eq!(request.received().1, r#"{"model":"org/llama-7b"}"#);
    };
    proxy.world().faults.body = Some(Status::InternalFailure);
    let request = worker.post(CHAT, &text);
    assert!(request.destination().is_some());
    unchanged(&request);
    proxy.world().faults.body = None;

    // The headers were sent on although they were held.
    let length = text.len().to_string();
    let request = worker.send(Request::post(CHAT).header("content-length", length).pieces([&text]).unfinished());
    proxy.world().faults.change = Some(Status::BadArgument);
    request.end();
    unchanged(&request);
    assert_eq!(proxy.metric("endpoint_picker_rewrites_refused_total"), 2);
    assert_eq!(proxy.metric("endpoint_picker_rewritten_total"), 0);
}

#[test]
fn an_answer_that_cannot_be_changed_passes() {
    let (proxy, worker) = rewriting();
    let request = worker.post(CHAT, chat(&["hello"]));
    request.answers_with(JSON);
    proxy.world().faults.body = Some(Status::InternalFailure);
    request.says(r#"{"model":"org/llama-7b","#).says(r#""model":"org/llama-7b"}"#).says_no_more();
    assert_eq!(request.received().1, r#"{"model":"org/llama-7b","model":"org/llama-7b"}"#);
    assert_eq!(proxy.metric("endpoint_picker_rewrites_refused_total"), 1);
}

#[test]
fn without_a_pick_the_request_is_rewritten_or_refused_all_the_same() {
    let configuration = with(with(pool(2), "model_rewrites", rules()), "failure_mode", json!("fail-open"));
    let request = Proxy::envoy(configuration).worker().post(CHAT, chat(&["hello"]));
    assert_eq!(body(&request), renamed(&chat(&["hello"])));
    request.answers_with(JSON).says(r#"{"model":"org/llama-7b"}"#);
    assert_eq!(request.received().1, r#"{"model":"m"}"#);

    let request = Proxy::envoy(with(pool(2), "model_rewrites", rules())).worker().post(CHAT, chat(&["hello"]));
    assert_eq!(request.reply().status, 503);
    assert_eq!(request.reply_json()["error"]["code"], "no_snapshot");
}
