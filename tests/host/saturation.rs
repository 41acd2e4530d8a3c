//! What the statistics say of how full the pool is.

use serde_json::json;

use crate::fixture::{CHAT, address, chat, ms, pool, ready, with};
use crate::proxy::{Proxy, Server};

fn gauge(proxy: &Proxy, name: &str) -> u64 {
    proxy.metric(&format!("endpoint_picker_{name}"))
}

#[test]
fn one_hot_server_shows_beside_the_mean_that_hides_it() {
    let (proxy, _worker) = ready(pool(4));
    proxy.server(&address(3), Server::vllm(20, 8, 0.1));
    proxy.run_for(ms(300));
    // The three others use an eighth of their cache's share.
    assert_eq!(gauge(&proxy, "saturation_permille"), 1093);
    assert_eq!(gauge(&proxy, "saturation_hottest_permille"), 4000);
    assert_eq!((gauge(&proxy, "endpoints_stale"), gauge(&proxy, "ledger_alone")), (0, 0));
}

#[test]
fn what_is_in_flight_shows_with_the_detector_that_counts_it() {
    let detector = json!({ "type": "concurrency-detector", "parameters": { "maxConcurrency": 2 } });
    let (proxy, worker) = ready(with(pool(4), "saturation", detector));
    let open: Vec<_> = (0..3).map(|_| worker.post(CHAT, chat(&["hello"]))).collect();
    proxy.run_for(ms(300));
    assert_eq!(gauge(&proxy, "saturation_permille"), 375);
    drop(open);
}

#[test]
fn servers_that_draw_no_new_requests_are_no_room() {
    let mut configuration = pool(2);
    configuration["pool"]["endpoints"][1]["draining"] = json!(true);
    let (proxy, _worker) = ready(configuration);
    proxy.server(&address(1), Server::vllm(5, 8, 0.1));
    proxy.run_for(ms(300));
    assert_eq!(gauge(&proxy, "saturation_permille"), 1000);
}

#[test]
fn silence_of_all_servers_is_told_once_a_minute_and_shown_until_one_speaks() {
    let lines = |proxy: &Proxy| {
        proxy.world().logs.iter().filter(|(_, line)| line.contains("what is in flight decides alone")).count()
    };
    let (proxy, worker) = ready(pool(2));
    proxy.server(&address(1), Server::Hangs);
    proxy.run_for(ms(10_000));
    assert_eq!((gauge(&proxy, "endpoints_stale"), gauge(&proxy, "ledger_alone"), lines(&proxy)), (1, 0, 0));
    proxy.server(&address(2), Server::IsForgotten);
    proxy.run_for(ms(4_000));
    assert_eq!((gauge(&proxy, "endpoints_stale"), gauge(&proxy, "ledger_alone"), lines(&proxy)), (2, 1, 1));
    assert!(worker.post(CHAT, chat(&["hello"])).destination().is_some());
    proxy.run_for(ms(50_000));
    assert_eq!(lines(&proxy), 1);
    proxy.run_for(ms(20_000));
    assert_eq!(lines(&proxy), 2);
    proxy.server(&address(1), Server::vllm(0, 0, 0.1));
    proxy.run_for(ms(5_000));
    assert_eq!((gauge(&proxy, "ledger_alone"), lines(&proxy)), (0, 2));
}
