//! The pool follows the members of a cluster, as the proxy's admin interface tells them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::fixture::{CHAT, address, chat, ms, only, pool, with};
use crate::proxy::{Proxy, Server, Status, Worker};

const CLUSTERS: &str = "/clusters?format=json&filter=%5Emodel_servers%24";

fn discovery() -> Value {
    json!({ "cluster": "model_servers", "admin_cluster": "admin", "metrics_path": "/stats/prometheus" })
}

/// A pool that is only found. The requests in flight decide, among healthy ones.
fn found() -> Value {
    let profile = json!({
        "filters": [{ "type": "healthy" }],
        "scorers": [{ "type": "active-request-scorer" }],
        "picker": { "type": "max-score-picker" },
    });
    json!({ "pool": { "discovery": discovery() }, "profile": profile })
}

/// As Envoy answers: these endpoints, by number, each with its health status.
fn listing(members: &[(usize, &str)]) -> Server {
    let host = |(n, status): &(usize, &str)| {
        json!({
            "address": { "socket_address": { "address": format!("10.0.0.{n}"), "port_value": 8000 } },
            "stats": [{ "name": "cx_total", "value": "3" }],
            "health_status": { "eds_health_status": status },
        })
    };
    let hosts: Vec<_> = members.iter().map(host).collect();
    Server::Says(
        json!({ "cluster_statuses": [{ "name": "model_servers", "host_statuses": hosts }] }).to_string().into(),
    )
}

fn healthy(numbers: &[usize]) -> Server {
    listing(&numbers.iter().map(|n| (*n, "HEALTHY")).collect::<Vec<_>>())
}

fn proxy(configuration: &Value, members: &Server) -> Proxy {
    let proxy = Proxy::envoy(configuration);
    (1..=9).for_each(|n| proxy.server(&address(n), Server::vllm(0, 0, 0.1)));
    proxy.cluster("admin", members.clone());
    proxy
}

fn started(configuration: &Value, members: &Server) -> (Proxy, Worker) {
    let proxy = proxy(configuration, members);
    proxy.scraper();
    let worker = proxy.worker();
    proxy.run_for(ms(1_500));
    (proxy, worker)
}

/// Who gets requests, one at a time and two to each.
fn picks(worker: &Worker) -> BTreeSet<String> {
    (0..60).map(|_| worker.get("/v1/models").picked()).collect()
}

fn addresses(numbers: &[usize]) -> BTreeSet<String> {
    numbers.iter().map(|n| address(*n)).collect()
}

#[test]
fn members_need_not_be_written_down() {
    let (proxy, worker) = started(&found(), &healthy(&[1, 2]));
    assert_eq!(picks(&worker), addresses(&[1, 2]));
    let [call, ..] = &proxy.calls_to("admin")[..] else { panic!("the admin interface was not asked") };
    assert_eq!((call.text(":path").as_str(), call.text(":method").as_str()), (CLUSTERS, "GET"));
    assert!(proxy.scrapes().iter().all(|scrape| scrape.text(":path") == "/stats/prometheus"));
    assert_eq!(proxy.metric("endpoint_picker_endpoints"), 2);
}

#[test]
fn until_the_members_are_known_requests_are_answered_with_503() {
    let (proxy, worker) = started(&found(), &Server::Refuses);
    assert_eq!(worker.post(CHAT, chat(&["hello"])).reply().status, 503);
    proxy.cluster("admin", healthy(&[3]));
    proxy.run_for(ms(1_500));
    assert_eq!(worker.post(CHAT, chat(&["hello"])).picked(), address(3));
}

#[test]
fn traffic_follows_members_that_join_and_leave_and_streams_go_on() {
    let (proxy, worker) = started(&found(), &healthy(&[1, 2]));
    let stays = worker.post(CHAT, chat(&["hello"]));
    let leaves = stays.picked();
    stays.answers(200).says("data: {}\n\n");
    let rest = if leaves == address(1) { 2 } else { 1 };

    proxy.cluster("admin", healthy(&[rest, 3]));
    proxy.run_for(ms(1_500));
    assert_eq!(picks(&worker), addresses(&[rest, 3]));
    let since = proxy.world().now;
    proxy.run_for(ms(500));
    assert!(proxy.scrapes().iter().all(|scrape| scrape.began < since || scrape.address() != leaves));
    stays.says("data: [DONE]\n\n").finishes();
    assert!(proxy.logged("1 joined, 1 left, 0 are too many"));
}

#[test]
fn a_newcomer_starts_slowly() {
    let (proxy, worker) = started(&found(), &healthy(&[1, 2]));
    let busy: Vec<_> = (0..8).map(|_| worker.post(CHAT, chat(&["hello"]))).collect();
    proxy.cluster("admin", healthy(&[1, 2, 3]));
    proxy.run_for(ms(1_500));
    let more: Vec<_> = (0..6).map(|_| worker.post(CHAT, chat(&["hello"]))).collect();
    let newcomers = more.iter().filter(|request| request.picked() == address(3)).count();
    assert_eq!(newcomers, 1, "it is idle, and new");
    drop((busy, more));
}

#[test]
fn a_member_that_drains_gets_nothing_new_and_is_scraped_on() {
    let (proxy, worker) = started(&found(), &healthy(&[1, 2]));
    proxy.cluster("admin", listing(&[(1, "DRAINING"), (2, "HEALTHY")]));
    proxy.run_for(ms(1_500));
    assert_eq!(picks(&worker), addresses(&[2]));
    let since = proxy.world().now;
    proxy.run_for(ms(500));
    assert!(proxy.scrapes().iter().any(|scrape| scrape.began > since && scrape.address() == address(1)));
    proxy.cluster("admin", healthy(&[1, 2]));
    proxy.run_for(ms(1_500));
    assert_eq!(picks(&worker), addresses(&[1, 2]));
}

#[test]
fn a_member_that_envoy_holds_for_unhealthy_gets_nothing_while_others_are_healthy() {
    let (proxy, worker) = started(&found(), &listing(&[(1, "UNHEALTHY"), (2, "HEALTHY")]));
    assert_eq!(picks(&worker), addresses(&[2]));
    assert_eq!(proxy.metric("endpoint_picker_endpoints_unreachable"), 1);
    proxy.cluster("admin", listing(&[(1, "UNHEALTHY"), (2, "UNHEALTHY")]));
    proxy.run_for(ms(1_500));
    assert_eq!(picks(&worker), addresses(&[1, 2]));
}

#[test]
fn an_answer_that_cannot_be_used_changes_nothing_and_is_told_once_a_minute() {
    let cut = |server: &Server| Server::Says(server.text()[..server.text().len() / 2].to_vec());
    let good = healthy(&[1, 2]);
    for bad in [
        cut(&good),
        Server::Says(vec![b' '; 9 << 20]),
        Server::Says(b"<html>\n".to_vec()),
        Server::Says(vec![]),
        Server::Says(br#"{"cluster_statuses":[]}"#.to_vec()),
        Server::Answers(403, vec![], good.text().to_vec()),
        Server::Refuses,
        Server::Hangs,
        Server::SaysNothing,
    ] {
        let (proxy, worker) = started(&found(), &good);
        proxy.cluster("admin", bad.clone());
        proxy.run_for(ms(10_000));
        assert_eq!(picks(&worker), addresses(&[1, 2]), "{:.80}", format!("{bad:?}"));
        assert!((7..=10).contains(&proxy.metric("endpoint_picker_discovery_failed_total")));
        let told = proxy.world().logs.iter().filter(|(_, line)| line.contains("stay as they were")).count();
        assert_eq!(told, 1);
        proxy.cluster("admin", healthy(&[3]));
        proxy.run_for(ms(2_500));
        assert_eq!(picks(&worker), addresses(&[3]));
    }
}

#[test]
fn an_admin_interface_that_is_forgotten_or_cannot_be_asked_changes_nothing() {
    let (proxy, worker) = started(&found(), &healthy(&[1, 2]));
    proxy.cluster("admin", Server::IsForgotten);
    proxy.run_for(ms(5_000));
    proxy.world().faults.call = Some(Status::BadArgument);
    proxy.run_for(ms(2_500));
    assert!(proxy.logged("NotSent"));
    proxy.world().faults.call = None;
    assert_eq!(picks(&worker), addresses(&[1, 2]));
    proxy.cluster("admin", healthy(&[4]));
    proxy.run_for(ms(2_500));
    assert_eq!(picks(&worker), addresses(&[4]));
}

#[test]
fn a_pool_is_empty_when_two_answers_in_a_row_say_so() {
    let (proxy, worker) = started(&found(), &healthy(&[1, 2]));
    proxy.cluster("admin", healthy(&[]));
    proxy.run_for(ms(1_000));
    assert_eq!(picks(&worker), addresses(&[1, 2]));
    proxy.run_for(ms(1_200));
    assert_eq!(worker.post(CHAT, chat(&["hello"])).reply().status, 503);
}

#[test]
fn one_worker_asks_and_another_goes_on_from_what_it_knew() {
    let proxy = proxy(&found(), &healthy(&[1, 2]));
    let scraper = proxy.scraper();
    let workers = [proxy.worker(), proxy.worker()];
    proxy.run_for(ms(5_500));
    let calls = proxy.calls_to("admin");
    assert!((5..=6).contains(&calls.len()), "{} questions in 5.5 s", calls.len());
    assert!(calls.iter().all(|call| scraper.made(call)));

    scraper.traps();
    proxy.cluster("admin", Server::Refuses);
    proxy.run_for(ms(3_000));
    for worker in &workers {
        assert_eq!(picks(worker), addresses(&[1, 2]));
        proxy.run_for(ms(100));
    }
    assert!(proxy.calls_to("admin").len() > calls.len(), "someone else asks now");
    assert_eq!(picks(&proxy.worker()), addresses(&[1, 2]), "a new worker has the list from the snapshot");
}

#[test]
fn written_endpoints_stay_and_workers_that_know_no_discovery_keep_to_their_own() {
    let mut both = pool(1);
    both["pool"]["discovery"] = discovery();
    let (proxy, worker) = started(&both, &healthy(&[2, 3]));
    assert_eq!(picks(&worker), addresses(&[1, 2, 3]));
    let old = proxy.start("picker", pool(2).to_string()).unwrap();
    proxy.run_for(ms(300));
    assert_eq!(picks(&old), addresses(&[1, 2]));
    proxy.cluster("admin", listing(&[(1, "DRAINING"), (2, "HEALTHY")]));
    proxy.run_for(ms(1_500));
    for worker in [&worker, &old] {
        assert_eq!(picks(worker), addresses(&[2]));
    }
}

#[test]
fn without_discovery_nobody_asks_the_admin_interface() {
    let (proxy, _worker) = started(&pool(2), &healthy(&[1, 2]));
    assert!(proxy.calls_to("admin").is_empty());
}

#[test]
fn a_label_drains() {
    let endpoints = json!([
        { "address": address(1), "labels": { "state": "drain" } },
        { "address": address(2), "labels": { "state": "serve" } },
        { "address": address(3) },
    ]);
    for (label, left) in [("state=drain", &[2, 3][..]), ("state", &[3])] {
        let labelled = json!({ "pool": { "endpoints": endpoints, "draining_label": label } });
        let (_proxy, worker) = started(&labelled, &healthy(&[]));
        assert_eq!(picks(&worker), addresses(left), "{label}");
    }
}

/// As after a new configuration from LDS or ECDS: a new worker beside the one that goes on with its streams.
#[test]
fn a_changed_configuration_finds_what_is_in_flight_and_what_is_cached() {
    let long = "tell me more of it. ".repeat(400);
    let prefix = |n| with(pool(n), "profile", only("prefix-cache-scorer"));
    let (proxy, old) = started(&prefix(2), &healthy(&[]));
    let first = old.post(CHAT, chat(&[&long]));
    let server = first.picked();
    first.answers(200).says("data: {}\n\n");
    let new = proxy.start("picker", prefix(3).to_string()).unwrap();
    assert_eq!(new.post(CHAT, chat(&[&long, "and then?"])).picked(), server, "the prefix index survives");

    let active = with(pool(3), "profile", only("active-request-scorer"));
    let newer = proxy.start("picker", active.to_string()).unwrap();
    for _ in 0..8 {
        assert_ne!(newer.post(CHAT, chat(&["hello"])).picked(), server, "its stream is counted on");
    }
    first.finishes();
    proxy.run_for(ms(100));
    assert!(picks(&newer).contains(&server));
}
