//! What answers say of the tokens they took, read as they flow by.

use serde_json::json;

use crate::fixture::{CHAT, chat, ms, only, pool, ready, with};
use crate::proxy::{Exchange, Proxy, Request, Worker};

const JSON: &[(&str, &[u8])] = &[(":status", b"200"), ("content-type", b"application/json")];

fn reads(request: &Exchange) -> usize {
    request.host_calls().get("get_buffer_bytes").copied().unwrap_or(0)
}

/// An answer to a prompt of which `cached` tokens in a thousand were in the cache.
fn usage(cached: u32) -> String {
    json!({ "choices": [], "usage": {
        "prompt_tokens": 1000, "completion_tokens": 8, "prompt_tokens_details": { "cached_tokens": cached }
    } })
    .to_string()
}

/// Two servers, and the cached prefix decides.
fn by_prefix() -> (Proxy, Worker) {
    ready(with(pool(2), "profile", only("prefix-cache-scorer")))
}

/// Answers one request after the other. The servers that got them.
fn converse(proxy: &Proxy, worker: &Worker, requests: usize, answer: impl Fn(&Exchange)) -> Vec<String> {
    let prompt = chat(&[&"word ".repeat(800)]);
    let picks = (0..requests).map(|_| {
        let request = worker.post(CHAT, &prompt);
        let picked = request.picked();
        answer(&request);
        request.finishes();
        // What is learned is told to all workers a few times a second.
        proxy.run_for(ms(250));
        picked
    });
    picks.collect()
}

#[test]
fn each_piece_of_an_answer_is_read_once() {
    let (_proxy, worker) = ready(pool(2));
    for headers in [JSON, &[(":status", b"200"), ("content-type", b"text/event-stream")]] {
        let request = worker.post(CHAT, chat(&["hello"]));
        request.answers_with(headers);
        assert_eq!(reads(&request), 1, "the prompt");
        for pieces in 1..10 {
            request.says("data: {}\n\n");
            assert_eq!(reads(&request), 1 + pieces);
        }
        request.finishes();
    }
}

#[test]
fn answers_that_say_nothing_of_use_are_not_read() {
    let (_proxy, worker) = ready(pool(2));
    let body = json!({ "model": "m", "input": "hello" }).to_string();
    let plain = ("content-type", &b"application/json"[..]);
    for (request, headers) in [
        (Request::get("/v1/models"), vec![plain]),
        (Request::post("/tokenize").body(&body), vec![plain]),
        (Request::post("/v1/embeddings").body(&body), vec![plain]),
        (Request::post(CHAT).body(chat(&["hello"])), vec![plain, ("content-encoding", b"gzip")]),
        (Request::post(CHAT).body(chat(&["hello"])), vec![("content-type", b"text/html")]),
        (Request::post(CHAT).body(chat(&["hello"])), vec![]),
        (
            Request::post(CHAT).body(chat(&["hello"])),
            vec![("content-type", b"\xff\xfe"), ("content-encoding", b"\x00")],
        ),
    ] {
        let request = worker.send(request);
        let before = reads(&request);
        request.answers_with(&[&[(":status", &b"200"[..])], headers.as_slice()].concat());
        request.says(&usage(0));
        assert_eq!(reads(&request), before, "{headers:?}");
        request.finishes();
    }
}

#[test]
fn how_soon_a_server_refuses_says_nothing_of_how_fast_it_is() {
    let (_proxy, worker) = ready(pool(2));
    for status in [b"429", b"503", b"400"] {
        let request = worker.post(CHAT, chat(&["hello"]));
        request.answers_with(&[(":status", status), ("content-type", b"text/event-stream")]);
        let before = reads(&request);
        request.says(&format!("data: {}\n\n", usage(0)));
        assert_eq!(reads(&request), before);
        request.finishes();
    }
}

#[test]
fn a_server_that_finds_nothing_in_its_cache_is_not_believed_to_hold_it() {
    let (proxy, worker) = by_prefix();
    let picks = converse(&proxy, &worker, 80, |request| _ = request.answers_with(JSON).says(&usage(0)));
    assert!(picks[1..17].iter().all(|picked| *picked == picks[0]), "{picks:?}");
    assert!(picks.iter().any(|picked| *picked != picks[0]), "it was believed to the end");
    // Each of them was believed the first time, or a few times more.
    let lost = proxy.metric("endpoint_picker_cache_lost_total");
    assert!((16..40).contains(&lost), "{lost} misses counted");
}

#[test]
fn a_prompt_stays_where_it_is_cached_however_the_answer_is_cut_or_whatever_it_says() {
    let whole = format!("data: {}\n\ndata: [DONE]\n\n", usage(990));
    let answers: [&dyn Fn(&Exchange); 4] = [
        &|request| whole.as_bytes().chunks(7).for_each(|piece| _ = request.says(std::str::from_utf8(piece).unwrap())),
        &|request| _ = request.says("data: {\"choices\":[]}\n\n"),
        &|request| _ = request.says(&format!("data: {}\n\n", usage(u32::MAX))),
        &|request| _ = request.says("\u{0}}}}]data: {\"usage\":{\"prompt_tokens\":0,\"cached_tokens\":-1"),
    ];
    for answer in answers {
        let (proxy, worker) = by_prefix();
        let picks = converse(&proxy, &worker, 40, |request| {
            request.answers(200);
            answer(request);
        });
        assert!(picks.iter().all(|picked| *picked == picks[0]), "{picks:?}");
        assert_eq!(proxy.metric("endpoint_picker_cache_lost_total"), 0);
    }
}
