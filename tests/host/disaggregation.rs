//! One server reads the prompt, another one generates the answer.

use serde_json::{Value, json};

use crate::fixture::{CHAT, address, chat, ms, only, pool, ready, with};
use crate::proxy::{Exchange, Proxy, Request, Worker};

const PREFILLER: &str = "x-prefiller-host-port";

/// Endpoints with these roles, split by a decider.
fn split(roles: &[&str], decider: Value) -> Value {
    let mut configuration = pool(roles.len());
    for (at, role) in roles.iter().enumerate() {
        configuration["pool"]["endpoints"][at]["labels"] = json!({ "llm-d.ai/role": role });
    }
    with(configuration, "disaggregation", json!({ "prefill": only("active-request-scorer"), "decider": decider }))
}

fn always(roles: &[&str]) -> Value {
    split(roles, json!({ "type": "always-disagg-pd-decider" }))
}

fn prefiller(request: &Exchange) -> Option<String> {
    request.sent().unwrap().headers.get(PREFILLER).map(|value| String::from_utf8(value).unwrap())
}

fn open(worker: &Worker) -> Exchange {
    worker.post(CHAT, chat(&["hello"]))
}

#[test]
fn the_server_that_reads_is_named_beside_the_one_that_generates() {
    let (proxy, worker) = ready(with(always(&["prefill", "decode"]), "explain", json!("header")));
    let request = open(&worker);
    assert_eq!((request.picked(), prefiller(&request)), (address(2), Some(address(1))));
    assert_eq!(request.destination(), Some(address(2)), "a retry does not go to the one that reads");
    let bare = worker.get("/v1/models");
    assert_eq!((bare.picked(), prefiller(&bare)), (address(2), None));
    assert_eq!(proxy.metric("endpoint_picker_prefill_decode_total"), 1);
    assert_eq!(proxy.metric("endpoint_picker_decode_only_total"), 0, "there was no prompt");
}

#[test]
fn profiles_that_name_the_role_filters_choose_alike() {
    let profile = |filter: &str| {
        json!({ "filters": [{ "type": filter }], "scorers": [{ "type": "active-request-scorer" }],
            "picker": { "type": "max-score-picker" } })
    };
    let mut configuration = with(always(&["prefill", "decode", "both"]), "profile", profile("decode-filter"));
    configuration["disaggregation"]["prefill"] = profile("prefill-filter");
    for configuration in [configuration, always(&["prefill", "decode", "both"])] {
        let (_proxy, worker) = ready(configuration);
        for _ in 0..16 {
            let request = open(&worker);
            let (generates, reads) = (request.picked(), prefiller(&request).unwrap());
            assert!(generates != address(1) && reads != address(2) && generates != reads, "{generates} {reads}");
        }
    }
}

#[test]
fn a_short_prompt_is_read_where_its_answer_is_generated() {
    let decider = json!({ "type": "prefix-based-pd-decider", "parameters": { "nonCachedTokens": 512 } });
    let (proxy, worker) = ready(split(&["prefill", "decode"], decider));
    assert_eq!(prefiller(&open(&worker)), None);
    assert_eq!(prefiller(&worker.post(CHAT, chat(&[&"word ".repeat(1000)]))), Some(address(1)));
    assert_eq!(prefiller(&worker.post(CHAT, chat(&[&"word ".repeat(1000)]))), None, "it is cached there by now");
    assert_eq!(proxy.metric("endpoint_picker_prefill_decode_total"), 1);
    assert_eq!(proxy.metric("endpoint_picker_decode_only_total"), 2);
}

#[test]
fn a_client_cannot_name_the_server_that_reads() {
    let evil = "169.254.169.254:80";
    let decider = json!({ "type": "prefix-based-pd-decider" });
    let never = split(&["prefill", "decode"], decider);
    let requests = || {
        [
            Request::get("/v1/models"),
            Request::post(CHAT).body(chat(&["hello"])),
            Request::post(CHAT).body("{ not json"),
            Request::post(CHAT).pieces(["{}"]).with_trailers(),
        ]
        .map(|request| request.header(PREFILLER, evil).header("X-Prefiller-Host-Port", evil))
    };
    let (_proxy, worker) = ready(never.clone());
    for request in requests() {
        assert_eq!(prefiller(&worker.send(request.clone())), None, "{request:?}");
    }
    let (_proxy, worker) = ready(always(&["prefill", "decode"]));
    for request in requests() {
        assert_ne!(prefiller(&worker.send(request.clone())).as_deref(), Some(evil), "{request:?}");
    }
    let open = Proxy::envoy(with(never, "failure_mode", json!("fail-open")));
    for request in requests() {
        assert_eq!(prefiller(&open.worker().send(request.clone())), None, "{request:?}");
    }
}

#[test]
fn without_disaggregation_the_header_is_none_of_our_business() {
    let (_proxy, worker) = ready(pool(2));
    let request = worker.send(Request::post(CHAT).header(PREFILLER, "10.9.9.9:1").body(chat(&["hello"])));
    assert_eq!(prefiller(&request).as_deref(), Some("10.9.9.9:1"));
}

/// Two servers that read have two requests each, and one of the first one's begins to be answered or ends: then it has one, as
/// it had before, whatever else happens.
fn falls_once(ending: impl Fn(&Exchange)) {
    let (_proxy, worker) = ready(always(&["prefill", "prefill", "decode"]));
    for round in 0..16 {
        let requests: Vec<_> = (0..4).map(|_| open(&worker)).collect();
        let first = requests.iter().find(|request| prefiller(request) == Some(address(1))).unwrap();
        ending(first);
        let more: Vec<_> = (0..3).map(|_| open(&worker)).collect();
        let read: Vec<_> = more.iter().map(prefiller).collect();
        assert_eq!(read[0], Some(address(1)), "round {round}: {read:?}");
        assert_ne!(read[1], read[2], "round {round}: {read:?}");
    }
}

#[test]
fn the_prompt_is_counted_where_it_is_read_until_the_first_token() {
    falls_once(|request| {
        request.answers(200).says("data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n");
    });
}

#[test]
fn the_prompt_is_counted_once_whatever_ends_the_request() {
    falls_once(|request| request.answers(200).says("data: {}\n\n").finishes());
    falls_once(|request| request.answers(500).says("{}").finishes());
    falls_once(Exchange::close);
    falls_once(|request| request.answers(200).close());
    falls_once(|request| request.fails_at(&address(3)).finishes());
    falls_once(|request| request.answered_by("192.0.2.1:80", 200).says("data: {}\n\n").finishes());
}

#[test]
fn a_request_that_a_retry_moved_is_counted_where_it_is_generated_and_read() {
    let configuration = always(&["prefill", "prefill", "decode", "decode"]);
    let (proxy, worker) = ready(with(configuration, "profile", only("active-request-scorer")));
    for round in 0..16 {
        let mut requests = [open(&worker), open(&worker)];
        requests.sort_by_key(Exchange::picked);
        requests[0].answered_by(&address(4), 200);
        let next = [open(&worker), open(&worker)];
        assert!(next.iter().all(|request| request.picked() == address(3)), "round {round}");
        assert_ne!(prefiller(&next[0]), prefiller(&next[1]), "round {round}: both prompts are still read");
    }
    proxy.run_for(ms(300));
    assert_eq!(proxy.metric("endpoint_picker_requests_in_flight"), 0);
}

/// 20 requests a second for 20 s, of which those that `broken` has to do with are answered with 500. The most servers that were
/// failing at a time and those at the end, and how many requests the broken one generated and read.
fn with_broken(broken: &str) -> ([u64; 2], [usize; 2]) {
    let (proxy, worker) = ready(always(&["prefill", "prefill", "decode", "decode", "decode"]));
    let (mut most, mut generated, mut read) = (0, 0, 0);
    for _ in 0..400 {
        proxy.run_for(ms(50));
        let request = open(&worker);
        let (generates, reads) = (request.picked() == broken, prefiller(&request).as_deref() == Some(broken));
        generated += usize::from(generates);
        read += usize::from(reads);
        request.answers(if generates || reads { 500 } else { 200 }).says("data: {}\n\n").finishes();
        most = most.max(proxy.metric("endpoint_picker_endpoints_failing"));
    }
    ([most, proxy.metric("endpoint_picker_endpoints_failing")], [generated, read])
}

#[test]
fn a_failure_is_the_fault_of_the_server_that_reads_or_of_the_one_that_generates() {
    let (failing, [_, read]) = with_broken(&address(1));
    assert!(failing == [1, 1] && (1..20).contains(&read), "{failing:?} failing, {read} read by the broken one");
    let ([_, failing], [generated, _]) = with_broken(&address(3));
    assert!(failing == 1 && (1..20).contains(&generated), "{failing} failing, {generated} generated by the broken one");
}
