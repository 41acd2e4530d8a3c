//! Which requests are looked at, and where they go.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use crate::fixture::{CHAT, INFERENCE_PATHS, address, chat, ms, only, pool, ready, with};
use crate::proxy::{Request, Server};

#[test]
fn requests_on_inference_paths_are_held_until_their_prompt_is_read() {
    let (_proxy, worker) = ready(pool(2));
    for path in INFERENCE_PATHS {
        for path in [path.to_string(), format!("{path}?api-version=1")] {
            let request = worker.send(Request::post(&path).pieces([r#"{"model":"#]).unfinished());
            assert!(request.is_held(), "{path}");
            request.piece(r#""m"}"#).end();
            assert!(request.destination().is_some(), "{path}");
        }
    }
}

#[test]
fn other_requests_are_placed_at_once() {
    let (_proxy, worker) = ready(pool(2));
    let mut requests = vec![
        Request::get("/v1/models"),
        Request::get(CHAT),
        Request::new("HEAD", "/"),
        Request::new("OPTIONS", "*"),
        Request::post("/v1/audio/transcriptions")
            .header("content-type", "multipart/form-data; boundary=x")
            .pieces(["--x"]),
        Request::post("/tokenize").header("content-type", "text/plain").pieces(["hello"]).unfinished(),
        Request::new("PUT", CHAT).pieces(["{}"]).unfinished(),
    ];
    requests.extend(INFERENCE_PATHS.iter().map(|path| Request::post(path).header("content-length", "0")));
    for request in requests {
        assert!(worker.send(request.clone()).destination().is_some(), "{request:?}");
    }
}

#[test]
fn a_conversation_stays_where_its_prefix_is_cached() {
    let (_proxy, worker) = ready(with(pool(8), "profile", only("prefix-cache-scorer")));
    let mut homes = BTreeSet::new();
    for conversation in 0..32 {
        let mut turns: Vec<String> = Vec::new();
        let mut home = None;
        for turn in 0..4 {
            turns.push(format!("conversation {conversation}, turn {turn}: {}", "tell me more of it. ".repeat(40)));
            let picked = worker.post(CHAT, chat(&turns.iter().map(String::as_str).collect::<Vec<_>>())).picked();
            assert_eq!(*home.get_or_insert(picked.clone()), picked, "conversation {conversation}, turn {turn}");
            homes.insert(picked);
        }
    }
    assert!(homes.len() >= 5, "32 conversations on {homes:?}");
}

#[test]
fn the_least_loaded_is_picked_by_default() {
    let (proxy, worker) = ready(pool(3));
    proxy.server(&address(1), Server::vllm(20, 64, 0.95));
    proxy.server(&address(3), Server::vllm(12, 64, 0.90));
    proxy.run_for(ms(200));
    assert_eq!(worker.post(CHAT, chat(&["hello"])).picked(), address(2));
    assert_eq!(worker.get("/v1/models").picked(), address(2));
}

#[test]
fn the_destination_lists_the_pick_and_endpoints_to_fall_back_to() {
    let picker = json!({ "type": "max-score-picker", "parameters": { "maxNumOfEndpoints": 3 } });
    let (_proxy, worker) = ready(with(pool(5), "profile", json!({ "picker": picker })));
    let destination = worker.post(CHAT, chat(&["hello"])).destination().unwrap();
    let list: BTreeSet<_> = destination.split(',').collect();
    assert_eq!(list.len(), 3, "{destination}");
    assert!(list.iter().all(|address| address.starts_with("10.0.0.") && address.ends_with(":8000")), "{destination}");
}

#[test]
fn requests_of_one_instant_spread_over_equal_servers() {
    let (_proxy, worker) = ready(pool(4));
    // None of them ends while the others come.
    let requests: Vec<_> =
        (0..40).map(|n| worker.post(CHAT, chat(&[&format!("{n}: {}", "hello ".repeat(200))]))).collect();
    let mut counts: BTreeMap<String, usize> = (1..=4).map(|n| (address(n), 0)).collect();
    requests.iter().for_each(|request| *counts.get_mut(&request.picked()).unwrap() += 1);
    let (most, least) = (counts.values().max().unwrap(), counts.values().min().unwrap());
    assert!(most - least <= 3, "{counts:?}");
}

#[test]
fn p67_the_server_that_answered_after_a_retry_is_the_one_that_has_the_prefix() {
    let (_proxy, worker) = ready(with(pool(4), "profile", only("prefix-cache-scorer")));
    for conversation in 0..16 {
        let first = format!("conversation {conversation}: {}", "tell me more of it. ".repeat(400));
        let request = worker.post(CHAT, chat(&[&first]));
        let other = (1..=4).map(address).find(|other| *other != request.picked()).unwrap();
        request.answered_by(&other, 200).says("data: {}\n\n").finishes();
        let next = worker.post(CHAT, chat(&[&first, "and then?"]));
        assert_eq!(next.picked(), other, "conversation {conversation}");
    }
}

#[test]
fn a_server_that_only_the_picker_knows_takes_part_and_one_that_only_the_scraper_knows_does_not() {
    let (proxy, _) = ready(pool(3));
    let mut own = pool(4);
    own["pool"]["endpoints"].as_array_mut().unwrap().remove(0);
    let worker = proxy.start("picker", own.to_string().as_bytes()).unwrap();
    let picked: BTreeSet<_> = (0..60).map(|_| worker.get("/v1/models").picked()).collect();
    assert_eq!(picked, (2..=4).map(address).collect());
}

#[test]
fn a_test_may_name_its_servers_where_the_profile_lets_it() {
    let testing =
        |filters| with(pool(3), "profile", json!({ "filters": filters, "picker": { "type": "random-picker" } }));
    let ask = |header: &str| Request::post(CHAT).header("test-epp-endpoint-selection", header).body(chat(&["hello"]));
    let (proxy, worker) = ready(testing(json!([{ "type": "header-based-testing-filter" }])));
    for _ in 0..16 {
        assert_eq!(worker.send(ask("10.0.0.2:8000")).picked(), address(2));
        assert_ne!(worker.send(ask("10.0.0.1:8000, 10.0.0.3")).picked(), address(2));
    }
    assert_eq!(worker.send(ask("10.0.0.9:8000")).reply().status, 503);
    let free: BTreeSet<_> = (0..64).map(|_| worker.post(CHAT, chat(&["hello"])).picked()).collect();
    assert_eq!(free.len(), 3, "without the header all take part");
    drop((proxy, worker));

    let (_proxy, worker) = ready(testing(json!([])));
    let deaf: BTreeSet<_> = (0..64).map(|_| worker.send(ask("10.0.0.2:8000")).picked()).collect();
    assert_eq!(deaf.len(), 3, "nobody listens to the header");
}

#[test]
fn prompts_that_nobody_has_go_around_among_all_workers() {
    let cold = || (0..6).map(|n| chat(&[&format!("{n}: {}", "hello ".repeat(200))]));
    let (proxy, first) = ready(with(pool(3), "profile", only("no-hit-lru-scorer")));
    let second = proxy.worker();
    proxy.run_for(ms(300));
    let workers = [&first, &second];
    let picks: Vec<_> =
        cold().zip(workers.iter().cycle()).map(|(body, worker)| worker.post(CHAT, body).picked()).collect();
    assert_eq!(picks[..3], picks[3..], "the same order again: {picks:?}");
    assert_eq!(picks[..3].iter().collect::<BTreeSet<_>>().len(), 3, "each once: {picks:?}");
}
