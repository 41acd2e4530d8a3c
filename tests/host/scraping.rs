//! Who is scraped when, and what an answer means.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::fixture::{CHAT, address, chat, ms, only, pool, ready, with};
use crate::proxy::{Call, Proxy, Server, Status};

/// The scrapes of each endpoint in order.
fn by_endpoint(proxy: &Proxy) -> BTreeMap<String, Vec<Call>> {
    let mut scrapes: BTreeMap<_, Vec<Call>> = BTreeMap::new();
    for call in proxy.scrapes() {
        scrapes.entry(call.address()).or_default().push(call);
    }
    scrapes
}

/// Endpoint 1 has a long queue, 2 an empty one; what is known of 3 decides whether it is ever picked.
fn three(third: Server) -> Proxy {
    let proxy = Proxy::envoy(by_queue(3));
    proxy.server(&address(1), Server::vllm(5, 0, 0.1));
    proxy.server(&address(2), Server::vllm(0, 0, 0.1));
    proxy.server(&address(3), third);
    proxy.scraper();
    proxy
}

fn by_queue(n: usize) -> Value {
    with(pool(n), "profile", only("queue-scorer"))
}

fn bad_scrapes() -> Vec<Server> {
    let good = Server::vllm(0, 0, 0.0);
    let text = good.text();
    let half = text[..text.len() / 2].to_vec();
    let length = |n: usize| vec![("content-length", n.to_string())];
    let kind = |kind: &str| vec![("content-type", kind.to_owned())];
    vec![
        Server::Refuses,
        Server::Hangs,
        Server::SaysNothing,
        Server::IsForgotten,
        Server::Answers(307, vec![("location", "/metrics/".into()), ("content-length", "0".into())], vec![]),
        Server::Answers(404, kind("text/plain"), text.to_vec()),
        Server::Answers(500, kind("text/plain"), text.to_vec()),
        Server::Answers(200, kind("application/json"), br#"[{"iter":1,"kvCacheStats":{}}]"#.to_vec()),
        Server::Answers(200, kind("text/html"), b"<html><body>Welcome</body></html>\n".to_vec()),
        Server::Answers(200, length(text.len()), half.clone()),
        Server::Answers(200, vec![], half),
        Server::Answers(200, length(0), vec![]),
        Server::Answers(200, vec![], vec![]),
    ]
}

#[test]
fn scrapes_are_spread_over_the_interval_and_each_endpoint_has_one() {
    let (proxy, _) = ready(pool(10));
    proxy.run_for(ms(2_000));

    for (endpoint, scrapes) in by_endpoint(&proxy) {
        assert!((22..=24).contains(&scrapes.len()), "{endpoint}: {} scrapes in 2.3 s", scrapes.len());
        let gaps = scrapes.windows(2).map(|pair| pair[1].began - pair[0].began);
        assert!(gaps.clone().all(|gap| (80..=120).contains(&gap)), "{endpoint}: {:?}", gaps.collect::<Vec<_>>());
    }
    let mut at_once = BTreeMap::<u64, usize>::new();
    proxy.scrapes().iter().for_each(|call| *at_once.entry(call.began).or_default() += 1);
    assert!(at_once.values().all(|n| *n <= 3), "bursts: {at_once:?}");
}

#[test]
fn never_two_scrapes_of_one_endpoint_are_under_way() {
    let proxy = Proxy::envoy(pool(3));
    proxy.server(&address(1), Server::vllm(0, 0, 0.0));
    proxy.server(&address(2), Server::Hangs);
    proxy.server(&address(3), Server::IsForgotten);
    proxy.scraper();
    proxy.run_for(ms(3_000));

    for (endpoint, scrapes) in by_endpoint(&proxy) {
        for pair in scrapes.windows(2) {
            assert!(pair[0].ended.is_some_and(|end| end <= pair[1].began), "{endpoint}: {pair:?}");
        }
    }
}

#[test]
fn a_server_that_never_answers_does_not_stop_the_scrapes_of_any() {
    for silent in [Server::Hangs, Server::IsForgotten] {
        let proxy = three(silent);
        proxy.run_for(ms(6_000));
        let scrapes = by_endpoint(&proxy);
        assert!((59..=61).contains(&scrapes[&address(1)].len()));
        // It has its turn again after each deadline, a second.
        assert!(scrapes[&address(3)].len() >= 5, "{} scrapes", scrapes[&address(3)].len());
    }
}

#[test]
fn a_scrape_names_the_endpoint_and_nothing_else() {
    let (proxy, _) = ready(with(
        pool(2),
        "pool",
        json!({ "endpoints": [
            { "address": "10.0.0.1:8000" },
            { "address": "[2001:db8::3]:8001", "metrics_path": "/prometheus/metrics" },
        ] }),
    ));
    let scrapes = by_endpoint(&proxy);
    for (endpoint, path) in [("10.0.0.1:8000", "/metrics"), ("[2001:db8::3]:8001", "/prometheus/metrics")] {
        let call = &scrapes[endpoint][0];
        assert_eq!((call.text(":authority").as_str(), call.text(":path").as_str()), (endpoint, path));
        assert_eq!((call.text(":method").as_str(), call.cluster.as_str()), ("GET", "endpoint_picker_scrape"));
    }
}

#[test]
fn an_answer_is_booked_to_the_endpoint_that_was_asked() {
    let (proxy, worker) = ready(by_queue(5));
    for idle in [3, 1, 5, 2, 4] {
        for n in 1..=5 {
            proxy.server(&address(n), Server::vllm(if n == idle { 0 } else { 7 }, 0, 0.1));
        }
        proxy.run_for(ms(200));
        assert_eq!(worker.post(CHAT, chat(&["hello"])).picked(), address(idle));
    }
}

#[test]
fn a_bad_scrape_leaves_the_last_values_to_age_and_never_becomes_zeros() {
    for bad in bad_scrapes() {
        let proxy = three(Server::vllm(9, 0, 0.1));
        let worker = proxy.worker();
        proxy.run_for(ms(300));
        proxy.server(&address(3), bad.clone());
        // Its old values count for 2 s; then it is unknown, which is not better than the best.
        for _ in 0..30 {
            proxy.run_for(ms(100));
            assert_eq!(worker.post(CHAT, chat(&["hello"])).picked(), address(2), "{bad:?}");
        }
    }
}

#[test]
fn an_endpoint_that_was_never_read_is_unknown_and_not_idle() {
    for bad in bad_scrapes() {
        let proxy = three(bad.clone());
        let worker = proxy.worker();
        proxy.run_for(ms(1_000));
        for _ in 0..20 {
            assert_eq!(worker.post(CHAT, chat(&["hello"])).picked(), address(2), "{bad:?}");
        }
    }
}

#[test]
fn a_server_that_recovers_counts_again_at_once() {
    let proxy = three(Server::Refuses);
    let worker = proxy.worker();
    proxy.run_for(ms(1_000));
    assert_eq!(proxy.metric("endpoint_picker_endpoints_unreachable"), 1);

    proxy.server(&address(2), Server::vllm(8, 0, 0.1));
    proxy.server(&address(3), Server::vllm(0, 0, 0.1));
    proxy.run_for(ms(200));
    assert_eq!(proxy.metric("endpoint_picker_endpoints_unreachable"), 0);
    assert_eq!(worker.post(CHAT, chat(&["hello"])).picked(), address(3));
}

#[test]
fn a_server_too_busy_to_answer_is_not_unreachable_at_once() {
    for silent in [Server::Hangs, Server::IsForgotten] {
        let proxy = three(Server::vllm(0, 0, 0.1));
        proxy.run_for(ms(300));
        proxy.server(&address(3), silent);
        proxy.run_for(ms(2_000));
        assert_eq!(proxy.metric("endpoint_picker_endpoints_unreachable"), 0);
        proxy.run_for(ms(2_000));
        assert_eq!(proxy.metric("endpoint_picker_endpoints_unreachable"), 1);
    }
}

#[test]
fn a_server_that_was_away_comes_back_without_its_cache() {
    let mut profile = only("prefix-cache-scorer");
    profile["filters"] = json!([{ "type": "healthy" }]);
    let (proxy, worker) = ready(with(pool(2), "profile", profile));
    let prompt = |n: usize| chat(&[&format!("{n} ").repeat(2_000)]);
    // A dozen prompts that 1 holds.
    proxy.server(&address(2), Server::Refuses);
    proxy.run_for(ms(1_000));
    (0..12).for_each(|n| assert_eq!(worker.post(CHAT, prompt(n)).picked(), address(1)));

    // Now only 2 holds them.
    proxy.server(&address(1), Server::Refuses);
    proxy.server(&address(2), Server::vllm(0, 0, 0.1));
    proxy.run_for(ms(1_000));
    (0..12).for_each(|n| assert_eq!(worker.post(CHAT, prompt(n)).picked(), address(2)));

    proxy.server(&address(1), Server::vllm(0, 0, 0.1));
    proxy.run_for(ms(1_000));
    assert_eq!(proxy.metric("endpoint_picker_endpoints_unreachable"), 0);
    (0..12).for_each(|n| assert_eq!(worker.post(CHAT, prompt(n)).picked(), address(2)));
}

#[test]
fn after_the_clock_was_set_back_old_values_are_not_believed_for_the_length_of_the_step() {
    let (proxy, worker) = ready(by_queue(2));
    proxy.server(&address(2), Server::vllm(5, 0, 0.1));
    proxy.run_for(ms(500));
    proxy.server(&address(1), Server::Answers(200, vec![], b"<html>\n".to_vec()));
    proxy.run_for(ms(40));
    proxy.world().clock_set = -3_600_000;
    proxy.run_for(ms(5_000));
    let picked: Vec<_> = (0..20).map(|_| worker.post(CHAT, chat(&["hello"])).picked()).collect();
    assert!(picked.contains(&address(2)), "what was once idle is still believed to be");
}

#[test]
fn prometheus_text_counts_whatever_its_content_type() {
    let text = Server::vllm(0, 0, 0.1).text().to_vec();
    let labelled = vec![("content-type", "application/json".to_owned()), ("content-length", text.len().to_string())];
    let proxy = three(Server::Answers(200, labelled, text));
    proxy.server(&address(2), Server::vllm(3, 0, 0.1));
    let worker = proxy.worker();
    proxy.run_for(ms(300));
    assert_eq!(worker.post(CHAT, chat(&["hello"])).picked(), address(3));
}

#[test]
fn a_proxy_that_takes_no_calls_is_asked_again() {
    for status in [Status::BadArgument, Status::InternalFailure] {
        let proxy = three(Server::vllm(9, 0, 0.1));
        let worker = proxy.worker();
        proxy.world().faults.call = Some(status);
        proxy.run_for(ms(59_000));
        assert_eq!(proxy.scrapes().len(), 0);
        assert_eq!(proxy.metric("endpoint_picker_endpoints_unreachable"), 0, "no server has refused anything");
        assert!(proxy.metric("endpoint_picker_scrapes_refused_total") > 1_000);
        let complains = |line: &str| line.contains("a cluster named \"endpoint_picker_scrape\"");
        assert_eq!(proxy.world().logs.iter().filter(|(_, line)| complains(line)).count(), 1);

        proxy.world().faults.call = None;
        proxy.run_for(ms(200));
        assert_eq!(worker.post(CHAT, chat(&["hello"])).picked(), address(2));
    }
}

#[test]
fn a_text_beyond_the_limit_is_as_good_as_cut_off() {
    let mut text = Server::vllm(0, 0, 0.1).text().to_vec();
    text.extend("# more of it\n".repeat(1000).bytes());
    let configuration = with(by_queue(2), "scrape", json!({ "max_text_bytes": 4096 }));
    let proxy = Proxy::envoy(configuration);
    proxy.server(&address(1), Server::vllm(3, 0, 0.1));
    proxy.server(&address(2), Server::Says(text));
    proxy.scraper();
    proxy.run_for(ms(1_000));
    assert_eq!(proxy.metric("endpoint_picker_scrapes_cut_off_total"), 10);
}

#[test]
fn a_long_text_is_read_to_its_end() {
    let mut text = "# HELP of another family\n".repeat(200_000).into_bytes();
    text.extend(Server::vllm(0, 0, 0.1).text());
    let proxy = three(Server::Says(text));
    proxy.server(&address(2), Server::vllm(3, 0, 0.1));
    let worker = proxy.worker();
    proxy.run_for(ms(300));
    assert_eq!(worker.post(CHAT, chat(&["hello"])).picked(), address(3));
}

#[test]
fn what_becomes_of_a_server_is_logged_once_and_not_at_every_scrape() {
    let proxy = three(Server::Refuses);
    proxy.run_for(ms(10_000));
    let lines = || proxy.world().logs.iter().filter(|(_, line)| line.starts_with(&address(3))).count();
    assert_eq!(lines(), 1, "unreachable");
    proxy.server(&address(3), Server::vllm(0, 0, 0.1));
    proxy.run_for(ms(10_000));
    assert_eq!(lines(), 2, "serves");
}

#[test]
fn a_server_that_flaps_does_not_flood_the_log() {
    let proxy = three(Server::vllm(0, 0, 0.1));
    for _ in 0..50 {
        proxy.server(&address(3), Server::Answers(200, vec![], b"cut".to_vec()));
        proxy.run_for(ms(200));
        proxy.server(&address(3), Server::vllm(0, 0, 0.1));
        proxy.run_for(ms(200));
    }
    let lines = proxy.world().logs.iter().filter(|(_, line)| line.starts_with(&address(3))).count();
    assert!(lines <= 3, "{lines} lines in 20 s");
}
