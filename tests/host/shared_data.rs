//! What lies in shared data, who reads it when, and what happens if it cannot be trusted.

use serde_json::json;

use crate::fixture::{CHAT, address, chat, ms, only, pool, ready, with};
use crate::proxy::{Proxy, Server, Status, Worker};

fn key(proxy: &Proxy, what: &str) -> Vec<u8> {
    let keys = proxy.world().shared.keys();
    keys.into_iter().find(|key| key.ends_with(what.as_bytes())).unwrap_or_else(|| panic!("no {what} in shared data"))
}

#[test]
fn a_snapshot_that_did_not_change_is_not_read_again() {
    let (proxy, worker) = ready(pool(2));
    let snapshot = key(&proxy, "snapshot");
    (1..=2).for_each(|n| proxy.server(&address(n), Server::Hangs));
    // Until they count as unreachable.
    proxy.run_for(ms(4_000));

    let reads = proxy.world().shared.reads(&snapshot);
    proxy.run_for(ms(1_000));
    worker.post(CHAT, chat(&["hello"])).picked();
    assert_eq!(proxy.world().shared.reads(&snapshot), reads);
}

/// The filter's calls for a request with an answer of two pieces, of which each takes one to be read.
fn calls_but_for_pieces(worker: &Worker, text: &str) -> usize {
    let request = worker.post(CHAT, chat(&[text]));
    request.answers(200).says("data: {}\n\n").says("data: [DONE]\n\n");
    let calls = request.host_calls();
    println!("{} bytes: {} host calls, 2 of them for pieces of the answer", text.len(), calls.values().sum::<usize>());
    calls.values().sum::<usize>() - 2
}

#[test]
fn a_request_makes_few_host_calls() {
    let (_proxy, worker) = ready(pool(50));
    assert!(calls_but_for_pieces(&worker, "hello") <= 20);
    for (bytes, most) in [(4 << 10, 20), (128 << 10, 60)] {
        assert!(calls_but_for_pieces(&worker, &"word ".repeat(bytes / 5)) <= most);
    }
}

#[test]
fn all_workers_pick_from_the_same_snapshot() {
    let (proxy, first) = ready(with(pool(4), "profile", only("queue-scorer")));
    let second = proxy.worker();
    for idle in 1..=4 {
        for n in 1..=4 {
            proxy.server(&address(n), Server::vllm(u32::from(n != idle), 0, 0.1));
        }
        proxy.run_for(ms(200));
        for worker in [&first, &second] {
            assert_eq!(worker.post(CHAT, chat(&["hello"])).picked(), address(idle));
        }
    }
}

#[test]
fn a_reloaded_worker_picks_at_once() {
    let (proxy, worker) = ready(pool(4));
    worker.traps();
    assert!(proxy.worker().post(CHAT, chat(&["hello"])).destination().is_some());
}

#[test]
fn a_torn_snapshot_is_not_believed() {
    let (proxy, worker) = ready(pool(2));
    let snapshot = key(&proxy, "snapshot");
    proxy.world().faults.torn = Some(snapshot);
    let reloaded = proxy.worker();
    proxy.run_for(ms(500));
    assert_eq!(reloaded.post(CHAT, chat(&["hello"])).reply().status, 503);
    assert!(worker.post(CHAT, chat(&["hello"])).destination().is_some(), "it has a whole one");

    proxy.world().faults.torn = None;
    proxy.run_for(ms(200));
    assert!(reloaded.post(CHAT, chat(&["hello"])).destination().is_some());
}

#[test]
fn foreign_bytes_under_our_keys_are_replaced() {
    for foreign in [&b""[..], b"x", b"{\"json\":true}", &[0xff; 300], &[0; 4096]] {
        let (proxy, _) = ready(pool(2));
        for what in ["lease", "snapshot"] {
            let key = key(&proxy, what);
            proxy.world().shared.put(&key, foreign.to_vec());
        }
        let worker = proxy.worker();
        proxy.run_for(ms(300));
        assert!(worker.post(CHAT, chat(&["hello"])).destination().is_some(), "{foreign:?}");
    }
}

#[test]
fn the_value_of_another_key_is_not_believed() {
    let (proxy, _) = ready(pool(2));
    let (lease, snapshot) = (key(&proxy, "lease"), key(&proxy, "snapshot"));
    {
        let mut world = proxy.world();
        let (a, b) = (world.shared.peek(&lease).unwrap().to_vec(), world.shared.peek(&snapshot).unwrap().to_vec());
        world.shared.put(&lease, b);
        world.shared.put(&snapshot, a);
    }
    assert_eq!(proxy.worker().post(CHAT, chat(&["hello"])).reply().status, 503);
    proxy.run_for(ms(300));
    assert!(proxy.worker().post(CHAT, chat(&["hello"])).destination().is_some());
}

#[test]
fn shared_data_that_cannot_be_written_costs_no_more_than_the_news() {
    for status in [Status::CasMismatch, Status::InternalFailure, Status::BadArgument] {
        let (proxy, worker) = ready(with(pool(2), "profile", only("queue-scorer")));
        proxy.world().faults.write = Some(status);
        proxy.server(&address(1), Server::vllm(9, 0, 0.1));
        proxy.run_for(ms(5_000));
        assert!(worker.post(CHAT, chat(&["hello"])).destination().is_some());

        proxy.world().faults.write = None;
        proxy.run_for(ms(1_500));
        assert_eq!(worker.post(CHAT, chat(&["hello"])).picked(), address(2));
    }
}

#[test]
fn pools_of_one_proxy_do_not_mix() {
    let pool = |name: &str, address: &str| json!({ "pool": { "name": name, "endpoints": [{ "address": address }] } });
    let chats = pool("chats", &address(1)).to_string();
    let code = pool("code", &address(2)).to_string();
    let proxy = Proxy::envoy("");
    let workers = [&chats, &code].map(|configuration| {
        proxy.start("scraper", configuration).unwrap();
        proxy.start("picker", configuration).unwrap()
    });
    proxy.run_for(ms(300));
    for (worker, n) in workers.iter().zip(1..) {
        assert_eq!(worker.post(CHAT, chat(&["hello"])).picked(), address(n));
    }
}

#[test]
fn news_that_could_not_be_written_is_written_later() {
    let picker = json!({ "type": "random-picker" });
    let (proxy, worker) =
        ready(with(pool(2), "profile", json!({ "filters": [{ "type": "healthy" }], "picker": picker })));
    // The second one lives, but says nothing that would be news.
    proxy.server(&address(2), Server::Answers(404, vec![], vec![]));
    proxy.run_for(ms(300));
    proxy.world().faults.write = Some(Status::InternalFailure);
    proxy.server(&address(1), Server::Refuses);
    proxy.run_for(ms(800));
    proxy.world().faults.write = None;
    proxy.run_for(ms(200));
    assert!((0..20).all(|_| worker.post(CHAT, chat(&["hello"])).picked() == address(2)));
}
