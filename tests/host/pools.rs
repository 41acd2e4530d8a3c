//! Several pools behind one filter: each request goes where its model is served.

use serde_json::{Value, json};

use crate::fixture::{CHAT, ms, pool, with};
use crate::proxy::{Proxy, Request, Server, Worker};

const MODEL: &str = "x-gateway-model-name";
const BASE: &str = "x-gateway-base-model-name";

/// Two pools of two servers each: `llama` with an adapter, and what `other` says.
fn two(other: Value) -> Value {
    let endpoints =
        |net: u32| json!([{ "address": format!("10.0.{net}.1:8000") }, { "address": format!("10.0.{net}.2:8000") }]);
    let mut second = json!({ "name": "second", "endpoints": endpoints(2) });
    second.as_object_mut().unwrap().extend(other.as_object().unwrap().clone());
    let first =
        json!({ "name": "first", "endpoints": endpoints(1), "models": ["llama"], "adapters": { "sql": "llama" } });
    json!({ "pools": [first, second] })
}

/// A proxy whose servers are idle and known to a worker.
fn ready(configuration: &Value) -> (Proxy, Worker) {
    let proxy = Proxy::envoy(configuration);
    for net in [1, 2] {
        for host in [1, 2] {
            proxy.server(&format!("10.0.{net}.{host}:8000"), Server::vllm(0, 0, 0.1));
        }
    }
    proxy.scraper();
    let worker = proxy.worker();
    proxy.run_for(ms(300));
    (proxy, worker)
}

fn asks(model: &str) -> String {
    json!({ "messages": [{ "role": "user", "content": "hello" }], "model": model }).to_string()
}

#[test]
fn a_request_goes_to_the_pool_of_its_model() {
    let (proxy, worker) = ready(&two(json!({ "models": ["qwen"] })));
    let mut requests = Vec::new();
    for n in 0..100 {
        let (model, net) = if n % 10 < 7 { (["llama", "sql"][n % 2], 1) } else { ("qwen", 2) };
        let request = worker.post(CHAT, asks(model));
        let picked = request.picked();
        assert!(picked.starts_with(&format!("10.0.{net}.")), "{model} went to {picked}");
        requests.push(picked);
    }
    for (address, least) in [("10.0.1.1:8000", 20), ("10.0.1.2:8000", 20), ("10.0.2.1:8000", 8), ("10.0.2.2:8000", 8)] {
        let count = requests.iter().filter(|picked| *picked == address).count();
        assert!(count >= least, "{address}: {count}");
    }
    assert_eq!(proxy.metric("endpoint_picker_picks_total"), 100);
}

#[test]
fn every_pool_is_scraped_and_counted_by_itself() {
    let (proxy, _worker) = ready(&two(json!({})));
    for pool in ["first", "second"] {
        assert_eq!(proxy.metric(&format!("endpoint_picker_endpoints_{pool}")), 2);
        assert_eq!(proxy.metric(&format!("endpoint_picker_endpoints_unreachable_{pool}")), 0);
    }
    let scraped = |address: &str| proxy.scrapes().iter().any(|call| call.address() == address);
    assert!(["10.0.1.1:8000", "10.0.1.2:8000", "10.0.2.1:8000", "10.0.2.2:8000"].into_iter().all(scraped));
    assert_eq!(proxy.metric("endpoint_picker_scrapes_timed_out_total"), 0);
}

#[test]
fn each_pool_knows_the_load_of_its_own_servers() {
    let (proxy, worker) = ready(&two(json!({})));
    proxy.server("10.0.1.1:8000", Server::vllm(20, 64, 0.95));
    proxy.server("10.0.2.2:8000", Server::vllm(20, 64, 0.95));
    proxy.run_for(ms(200));
    assert_eq!(worker.post(CHAT, asks("llama")).picked(), "10.0.1.2:8000");
    assert_eq!(worker.post(CHAT, asks("other")).picked(), "10.0.2.1:8000");
}

#[test]
fn a_pool_whose_servers_seem_dead_concerns_no_other() {
    let (proxy, worker) = ready(&two(json!({})));
    (1..=2).for_each(|host| proxy.server(&format!("10.0.1.{host}:8000"), Server::Refuses));
    proxy.run_for(ms(5_000));
    assert_eq!(proxy.metric("endpoint_picker_endpoints_unreachable_first"), 2);
    assert_eq!(proxy.metric("endpoint_picker_endpoints_unreachable_second"), 0);
    // Other servers do not have its model.
    assert!(worker.post(CHAT, asks("llama")).picked().starts_with("10.0.1."));
    assert!(worker.post(CHAT, asks("other")).picked().starts_with("10.0.2."));
}

#[test]
fn a_model_that_no_pool_serves_is_answered_in_the_clients_dialect() {
    let (proxy, worker) = ready(&two(json!({ "models": ["qwen"] })));
    let openai = worker.post(CHAT, asks("gpt"));
    assert_eq!((openai.reply().status, &openai.reply_json()["error"]["code"]), (404, &json!("model_not_found")));
    assert!(openai.reply_json()["error"]["message"].as_str().unwrap().contains("`gpt`"));
    let anthropic = worker.post("/v1/messages", asks("gpt"));
    assert_eq!((anthropic.reply().status, &anthropic.reply_json()["error"]["type"]), (404, &json!("not_found_error")));
    assert_eq!(proxy.metric("endpoint_picker_unknown_models_total"), 2);
    assert_eq!(proxy.metric("endpoint_picker_requests_in_flight_first"), 0);
}

#[test]
fn the_pool_without_models_takes_what_no_other_names() {
    let (_proxy, worker) = ready(&two(json!({})));
    for request in [
        Request::post(CHAT).body(asks("gpt")),
        Request::post(CHAT).body(r#"{"messages":[]}"#),
        Request::post(CHAT).body(r#"{"model":7}"#),
        Request::post(CHAT).body("not json"),
        Request::post(CHAT).header("content-encoding", "gzip").body(asks("llama")),
        Request::get("/v1/models"),
    ] {
        let picked = worker.send(request.clone()).picked();
        assert!(picked.starts_with("10.0.2."), "{request:?} went to {picked}");
    }
}

#[test]
fn without_such_a_pool_what_names_no_model_goes_to_the_first() {
    let (_proxy, worker) = ready(&two(json!({ "models": ["qwen"] })));
    assert!(worker.get("/v1/models").picked().starts_with("10.0.1."));
    assert!(worker.post(CHAT, r#"{"messages":[]}"#).picked().starts_with("10.0.1."));
}

#[test]
fn the_last_model_counts_where_a_body_names_two_as_for_the_model_servers() {
    let (_proxy, worker) = ready(&two(json!({ "models": ["qwen"] })));
    assert!(worker.post(CHAT, r#"{"model":"llama","model":"qwen"}"#).picked().starts_with("10.0.2."));
}

#[test]
fn the_model_and_its_base_are_told_in_headers_and_those_of_the_client_are_not() {
    let header = |request: Request, worker: &Worker, name: &str| {
        let sent = worker.send(request).sent().unwrap();
        sent.headers.get(name).map(|value| String::from_utf8(value).unwrap())
    };
    let spoofed = |request: Request| request.header(MODEL, "forged").header(BASE, "forged").header(BASE, "again");
    let (_proxy, worker) = ready(&with(two(json!({})), "model_headers", json!(true)));
    for (request, model, base) in [
        (Request::post(CHAT).body(asks("sql")), Some("sql"), Some("llama")),
        (Request::post(CHAT).body(asks("llama")), Some("llama"), Some("llama")),
        (Request::post(CHAT).body(asks("other")), Some("other"), Some("other")),
        (Request::post(CHAT).body(r#"{"messages":[]}"#), None, None),
        (Request::post(CHAT).body(asks("a\r\nx-admin: 1")), None, None),
        (Request::get("/v1/models"), None, None),
    ] {
        let told = |name| header(spoofed(request.clone()), &worker, name);
        assert_eq!((told(MODEL).as_deref(), told(BASE).as_deref()), (model, base), "{request:?}");
    }
}

#[test]
fn one_pool_tells_the_model_only_if_asked_to() {
    let (_proxy, worker) = crate::fixture::ready(pool(2));
    let sent = worker.send(Request::post(CHAT).header(MODEL, "mine").body(asks("m"))).sent().unwrap();
    assert_eq!(sent.headers.get(MODEL).unwrap(), b"mine");
    let (_proxy, worker) = crate::fixture::ready(with(pool(2), "model_headers", json!(true)));
    let sent = worker.send(Request::post(CHAT).header(MODEL, "mine").body(asks("m"))).sent().unwrap();
    assert_eq!(sent.headers.get(MODEL).unwrap(), b"m");
}

#[test]
fn a_request_that_leaves_the_model_open_goes_to_the_pool_of_the_one_chosen() {
    let rule = |model: &str, condition: &str, value: Value| json!({ "model": model, condition: value });
    let choice = json!({
        "rules": [
            rule("qwen", "has_tools", json!(true)),
            rule("qwen", "header", json!("x-big")),
            rule("sql", "keywords", json!(["select"])),
            rule("qwen", "min_prompt_tokens", json!(1000)),
        ],
        "default": "llama",
    });
    let configuration =
        with(with(two(json!({ "models": ["qwen"] })), "model_choice", choice), "model_headers", json!(true));
    let (_proxy, worker) = ready(&configuration);
    let says = |text: &str| json!({ "model": "auto", "messages": [{ "role": "user", "content": text }] });
    let with_tools = with(says("hi"), "tools", json!([{ "type": "function" }]));
    for (request, model) in [
        (Request::post(CHAT).body(says("hi").to_string()), "llama"),
        (Request::post(CHAT).body(with_tools.to_string()), "qwen"),
        (Request::post(CHAT).header("x-big", "1").body(says("hi").to_string()), "qwen"),
        (Request::post(CHAT).body(says("write a SELECT").to_string()), "sql"),
        (Request::post(CHAT).body(says(&"long ".repeat(1000)).to_string()), "qwen"),
        (Request::post(CHAT).body(asks("qwen")), "qwen"),
    ] {
        let sent = worker.send(request.clone());
        let told = sent.sent().unwrap().headers.get(MODEL).unwrap();
        assert_eq!(String::from_utf8(told).unwrap(), model, "{request:?}");
        let body: Value = serde_json::from_slice(&sent.sent().unwrap().body).unwrap();
        assert_eq!(body["model"], model, "{request:?}");
        let net = if model == "qwen" { 2 } else { 1 };
        assert!(sent.picked().starts_with(&format!("10.0.{net}.")), "{request:?} went to {}", sent.picked());
    }
}

#[test]
fn who_left_the_model_open_finds_that_name_in_the_answer() {
    let choice = json!({ "applies_to": ["any"], "rules": [], "default": "qwen" });
    let (_proxy, worker) = ready(&with(two(json!({ "models": ["qwen"] })), "model_choice", choice));
    let request = worker.post(CHAT, asks("any"));
    request.answers_with(&[(":status", b"200"), ("content-type", b"application/json")]).says(r#"{"model":"qwen"}"#);
    request.says_no_more();
    assert_eq!(request.received().1, r#"{"model":"any"}"#);
}

#[test]
fn a_rewrite_splits_requests_over_two_pools_by_weight() {
    let rule =
        json!({ "model": "chat", "targets": [{ "model": "llama", "weight": 70 }, { "model": "qwen", "weight": 30 }] });
    let (_proxy, worker) = ready(&with(two(json!({ "models": ["qwen"] })), "model_rewrites", json!([rule])));
    let to_second = (0..200).filter(|n| {
        let request = Request::post(CHAT).header("x-request-id", format!("request {n}")).body(asks("chat"));
        worker.send(request).picked().starts_with("10.0.2.")
    });
    let count = to_second.count();
    assert!((40..=80).contains(&count), "{count} of 200 went to the second pool");
}

#[test]
fn the_filter_is_ready_while_any_pool_is() {
    let (proxy, worker) = ready(&with(two(json!({})), "health_path", json!("/healthz")));
    assert_eq!(worker.get("/healthz").reply().status, 200);
    for (net, status) in [(1, 200), (2, 503)] {
        (1..=2).for_each(|host| proxy.server(&format!("10.0.{net}.{host}:8000"), Server::Refuses));
        proxy.run_for(ms(5_000));
        assert_eq!(worker.get("/healthz").reply().status, status);
    }
}

#[test]
fn a_worker_takes_over_the_scraping_of_every_pool() {
    let proxy = Proxy::envoy(two(json!({})));
    for net in [1, 2] {
        for host in [1, 2] {
            proxy.server(&format!("10.0.{net}.{host}:8000"), Server::vllm(0, 0, 0.1));
        }
    }
    let scraper = proxy.scraper();
    let worker = proxy.worker();
    proxy.run_for(ms(300));
    scraper.traps();
    proxy.run_for(ms(3_000));
    let made = |net: u32| {
        proxy.scrapes().iter().any(|call| worker.made(call) && call.address().starts_with(&format!("10.0.{net}.")))
    };
    assert!(made(1) && made(2));
    assert_eq!(proxy.metric("endpoint_picker_scraper_takeovers_total"), 2);
}
