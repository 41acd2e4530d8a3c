//! A client's requests go where the first one went, and clients cannot tell or choose where that is.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::fixture::{CHAT, address, chat, ms, pool, ready, with};
use crate::proxy::{Exchange, Proxy, Request, Server, Worker};

const TOKEN: &str = "x-session-token";

/// Eight servers. A session is where it is, and anything else is anywhere.
fn config(parameters: Value) -> Value {
    let filters = json!([{ "type": "session-affinity-filter", "parameters": parameters }]);
    with(pool(8), "profile", json!({ "filters": filters, "picker": { "type": "random-picker" } }))
}

fn request(header: &str, value: impl AsRef<[u8]>) -> Request {
    Request::post(CHAT).header(header, value).body(chat(&["hello"]))
}

/// A session that began without a token: its server and its token.
fn begin(worker: &Worker) -> (String, String) {
    let first = worker.post(CHAT, chat(&["hello"]));
    first.answers(200);
    (first.picked(), first.answer_header(TOKEN).expect("no token"))
}

/// Where requests with this token go. Each is answered by a token that counts: it is no session.
fn strays(worker: &Worker, token: impl AsRef<[u8]>, requests: usize) -> BTreeSet<String> {
    let placed = (0..requests).map(|_| {
        let stray = worker.send(request(TOKEN, &token));
        stray.answers(200);
        let given = stray.answer_header(TOKEN).expect("no token");
        assert_eq!(worker.send(request(TOKEN, given)).picked(), stray.picked());
        stray.picked()
    });
    placed.collect()
}

#[test]
fn a_session_stays_where_it_began() {
    let (proxy, worker) = ready(config(json!({})));
    let other = proxy.worker();
    proxy.run_for(ms(100));
    for _ in 0..8 {
        let (server, token) = begin(&worker);
        for worker in [&worker, &other].into_iter().cycle().take(8) {
            let next = worker.send(request(TOKEN, &token));
            assert_eq!(next.picked(), server);
            next.answers(200);
            assert_eq!(next.answer_header(TOKEN), None, "the client has it already");
        }
    }
}

#[test]
fn the_scorer_keeps_a_session_too() {
    let (_proxy, worker) = ready(with(
        pool(8),
        "profile",
        json!({ "scorers": [{ "type": "session-affinity-scorer" }], "picker": { "type": "max-score-picker" } }),
    ));
    let (server, token) = begin(&worker);
    (0..16).for_each(|_| assert_eq!(worker.send(request(TOKEN, &token)).picked(), server));
}

#[test]
fn a_session_token_forged_or_from_another_fleet_is_no_session() {
    let (proxy, worker) = ready(config(json!({})));
    let (_other_fleet, other) = ready(config(json!({})));
    let (_, foreign) = begin(&other);
    let mut sent = 0;
    let forged = ["10.0.0.1:8000", "MTAuMC4wLjE6ODAwMA", "AAAAAAAAAAAAAAAAAAAAAA", "a,b", "\u{1}"].map(str::as_bytes);
    for token in forged.into_iter().chain([foreign.as_bytes(), b"\xff\xfe", &[b'A'; 8192]]) {
        let servers = strays(&worker, token, 40);
        assert!(servers.len() >= 4, "{token:?} sends to {servers:?}");
        sent += 40;
    }
    assert_eq!(proxy.metric("endpoint_picker_sessions_unknown_total"), sent);
}

#[test]
fn with_a_secret_tokens_count_at_every_gateway_and_after_a_restart() {
    let secret = json!({ "secret": "correct horse battery staple" });
    let (_one, worker) = ready(config(secret.clone()));
    let (_two, elsewhere) = ready(config(secret));
    for _ in 0..8 {
        let (server, token) = begin(&worker);
        (0..4).for_each(|_| assert_eq!(elsewhere.send(request(TOKEN, &token)).picked(), server));
    }
}

#[test]
fn a_cookie_can_carry_the_session_beside_those_of_the_server() {
    let (_proxy, worker) = ready(config(json!({ "cookie": "route" })));
    let first = worker.post(CHAT, chat(&["hello"]));
    first.answers_with(&[(":status", b"200"), ("set-cookie", b"theirs=1")]);
    let cookies = first.answer_header("set-cookie").unwrap();
    let token = cookies.strip_prefix("theirs=1,route=").unwrap_or_else(|| panic!("{cookies}"));
    let token = token.strip_suffix("; Path=/; HttpOnly; SameSite=Lax").unwrap_or_else(|| panic!("{cookies}"));
    for _ in 0..16 {
        let next = worker.send(request("cookie", format!("theirs=1; route={token}")));
        assert_eq!(next.picked(), first.picked());
        next.answers_with(&[(":status", b"200"), ("set-cookie", b"theirs=2")]);
        assert_eq!(next.answer_header("set-cookie").as_deref(), Some("theirs=2"));
    }
    assert_eq!(worker.send(request("cookie", "route=forged")).answers(200).answer_header(TOKEN), None);
}

#[test]
fn the_token_is_that_of_the_server_that_answers() {
    let (_proxy, worker) = ready(config(json!({})));
    let (server, token) = begin(&worker);
    let other = if server == address(1) { address(2) } else { address(1) };
    let moved = worker.send(request(TOKEN, &token));
    moved.answered_by(&other, 200);
    let given = moved.answer_header(TOKEN).expect("the session moved");
    assert_eq!(worker.send(request(TOKEN, given)).picked(), other);
    let stranger = worker.send(request(TOKEN, &token));
    stranger.answered_by("192.0.2.1:80", 200);
    assert_eq!(stranger.answer_header(TOKEN), None, "nobody could be found by it");
}

#[test]
fn no_token_comes_with_an_answer_that_no_server_gave() {
    let (_proxy, worker) = ready(config(json!({})));
    let failed = worker.post(CHAT, chat(&["hello"]));
    failed.fails_at(&failed.picked());
    assert_eq!(failed.answer_header(TOKEN), None);
}

#[test]
fn a_session_moves_when_its_server_cannot_be_reached() {
    // Without the second filter the dead server could still be drawn, as by any request.
    let filters = json!([{ "type": "session-affinity-filter" }, { "type": "healthy" }]);
    let profile = json!({ "filters": filters, "picker": { "type": "random-picker" } });
    let (proxy, worker) = ready(with(pool(8), "profile", profile));
    let (server, token) = begin(&worker);
    proxy.server(&server, Server::Refuses);
    proxy.run_for(ms(3_000));
    let next = worker.send(request(TOKEN, &token));
    assert_ne!(next.picked(), server);
    next.answers(200);
    let given = next.answer_header(TOKEN).expect("the session moved");
    (0..16).for_each(|_| assert_eq!(worker.send(request(TOKEN, &given)).picked(), next.picked()));
}

#[test]
fn a_name_of_the_clients_choice_leads_to_the_same_server_at_every_gateway() {
    let by_name = || ready(config(json!({ "strategy": "session_id" })));
    let [(_one, worker), (_two, elsewhere)] = [by_name(), by_name()];
    let mut servers = BTreeSet::new();
    for name in 0..32 {
        let ask = |worker: &Worker| worker.send(request("x-session-id", format!("user-{name}")));
        let first = ask(&worker);
        first.answers(200);
        assert_eq!(first.answer_header(TOKEN), None, "the client knows its name");
        (0..4).for_each(|_| {
            assert_eq!([ask(&worker), ask(&elsewhere)].map(|ask| ask.picked()), [first.picked(), first.picked()])
        });
        servers.insert(first.picked());
    }
    assert!(servers.len() >= 6, "{servers:?}");
}

#[test]
fn requests_without_a_body_have_sessions_too() {
    let (_proxy, worker) = ready(config(json!({})));
    let (server, token) = begin(&worker);
    let ask = || worker.send(Request::get("/v1/models").header(TOKEN, &token));
    (0..16).map(|_| ask()).for_each(|ask: Exchange| assert_eq!(ask.picked(), server));
}

#[test]
fn what_a_client_expects_of_the_speed_decides_only_if_it_is_a_positive_number() {
    let scorer = json!([{ "type": "latency-scorer", "parameters": { "headroomSelectionStrategy": "least" } }]);
    let filter = json!([{ "type": "slo-headroom-tier-filter", "parameters": { "epsilonExploreNeg": 0 } }]);
    let profile = json!({ "filters": filter, "scorers": scorer, "picker": { "type": "max-score-picker" } });
    let proxy = Proxy::envoy(with(pool(2), "profile", profile));
    proxy.server(&address(1), Server::vllm(0, 0, 0.1));
    proxy.server(&address(2), Server::vllm(40, 40, 0.1));
    proxy.scraper();
    let worker = proxy.worker();
    proxy.run_for(ms(300));
    let picked = |value: &[u8]| worker.send(request("x-llm-d-slo-ttft-ms", value)).picked();
    // A minute leaves room for the queue, and keeps the idle server free; a tenth of a second does not.
    assert_eq!(picked(b"60000"), address(2));
    assert_eq!(picked(b"100"), address(1));
    for nothing in [&b"0"[..], b"-1", b"soon", b"NaN", b"inf", b"\xff\xfe", b""] {
        assert_eq!(picked(nothing), address(1), "{nothing:?}: where it is answered soonest");
    }
}
