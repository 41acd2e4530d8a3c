use serde_json::{Value, json};

use super::testing::{NOW, told};
use super::*;
use crate::scrape::Reading;

fn fresh(waiting: u32, kv_usage: f64) -> Signals {
    told(waiting, kv_usage, 10)
}

fn seen(signals: &Signals) -> Seen<'_> {
    Seen { health: Health::Serving, signals, requests: 0, tokens: 0 }
}

fn utilization(parameters: Value) -> Utilization {
    serde_json::from_value(parameters).unwrap()
}

fn survey(detector: &dyn Detector, servers: &[Signals]) -> Survey {
    Survey::of(detector, &servers.iter().map(seen).collect::<Vec<_>>(), NOW)
}

/// The saturation to four digits, as the reference's own tests have it.
fn digits(saturation: f64) -> f64 {
    (saturation * 1e4).round() / 1e4
}

#[track_caller]
fn has(servers: &[Signals], saturation: f64) {
    let parameters = json!({ "kvCacheUtilThreshold": 0.9, "metricsStalenessThreshold": "100ms" });
    assert_eq!(digits(survey(&utilization(parameters), servers).pool), saturation);
}

#[test]
fn utilization_is_the_mean_of_the_greater_of_queue_and_cache() {
    has(&[], 1.0);
    has(&[fresh(2, 0.5)], 0.5556);
    has(&[fresh(10, 0.1)], 2.0);
    has(&[fresh(1, 0.95)], 1.0556);
    has(&[fresh(1, 0.1), fresh(0, 0.2)], 0.2111);
    has(&[fresh(1, 0.1), fresh(15, 0.2)], 1.6);
    has(&[fresh(5, 0.1)], 1.0);
}

#[test]
fn a_server_that_told_nothing_lately_is_saturated() {
    has(&[told(0, 0.1, 101)], 1.0);
    has(&[Signals::default()], 1.0);
    has(&[fresh(1, 0.1), told(0, 0.0, 101)], 0.6);
    has(&[told(0, 0.0, 101), fresh(20, 0.1), fresh(0, 0.99)], 2.0333);
}

#[test]
fn or_is_left_out_with_the_policy_ignore() {
    let detector = utilization(json!({ "stalenessPolicy": "ignore" }));
    let stale = told(9, 0.9, 201);
    assert_eq!(survey(&detector, &[fresh(1, 0.0), stale.clone()]), Survey { pool: 0.2, hottest: 0.2, stale: 1 });
    assert_eq!(survey(&detector, &[stale.clone(), stale]), Survey { pool: 0.0, hottest: 0.0, stale: 2 });
    assert!(survey(&detector, &[]).is_full(), "no server at all has no room");
}

#[test]
fn a_signal_that_is_missing_or_old_leaves_the_other_to_judge_by() {
    let mut signals = told(9, 0.0, 500);
    signals.update(Reading { kv_usage: Some(0.4), ..Reading::default() }, NOW);
    assert_eq!(survey(&utilization(json!({})), &[signals]), Survey { pool: 0.5, hottest: 0.5, stale: 0 });
}

#[test]
fn one_hot_server_is_visible_beside_the_mean_that_hides_it() {
    let mut servers = vec![fresh(0, 0.0); 9];
    servers.push(fresh(20, 0.0));
    let Survey { pool, hottest, .. } = survey(&utilization(json!({})), &servers);
    assert_eq!((digits(pool), hottest), (0.4, 4.0));
}

#[test]
fn a_pool_of_one_is_as_full_as_its_server() {
    for (server, full) in [(fresh(4, 0.79), false), (fresh(5, 0.0), true), (fresh(0, 0.8), true)] {
        let survey = survey(&utilization(json!({})), &[server]);
        assert_eq!((survey.is_full(), survey.pool), (full, survey.hottest));
    }
}

/// The saturation of servers with so many requests and tokens in flight.
fn in_flight(parameters: Value, servers: &[(u32, u32)]) -> f64 {
    let (detector, signals): (Concurrency, _) = (serde_json::from_value(parameters).unwrap(), Signals::default());
    let server = |&(requests, tokens)| Seen { requests, tokens, ..seen(&signals) };
    Survey::of(&detector, &servers.iter().map(server).collect::<Vec<_>>(), NOW).pool
}

#[test]
fn concurrency_is_what_is_in_flight_of_what_may_be() {
    for (servers, saturation) in [
        (&[(0, 0)][..], 0.0),
        (&[(5, 0)], 0.5),
        (&[(10, 0)], 1.0),
        (&[(10, 0), (0, 0)], 0.5),
        (&[(15, 0), (15, 0)], 1.5),
        // Shares of thirds do not add up to one in floating point; requests do.
        (&[(7, 0), (12, 0), (11, 0)], 1.0),
        (&[], 1.0),
    ] {
        assert_eq!(in_flight(json!({ "maxConcurrency": 10 }), servers), saturation, "{servers:?}");
    }
}

#[test]
fn concurrency_counts_tokens_or_the_greater_of_both() {
    let servers = [(9, 100), (1, 800)];
    let parameters = |mode| json!({ "maxConcurrency": 10, "maxTokenConcurrency": 1000, "mode": mode });
    assert_eq!(in_flight(parameters("requests"), &servers), 0.5);
    assert_eq!(in_flight(parameters("tokens"), &servers), 0.45);
    assert_eq!(digits(in_flight(parameters("hybrid"), &servers)), 0.85);
    assert_eq!(in_flight(json!({}), &[(100, 0)]), 1.0);
    assert_eq!(in_flight(json!({ "mode": "tokens" }), &[(0, 500_000)]), 0.5);
}

#[test]
fn servers_that_are_gone_are_no_room_unless_all_seem_gone() {
    let (detector, signals) = (Concurrency::default(), Signals::default());
    let server = |health, requests| Seen { health, requests, ..seen(&signals) };
    let pool = |servers: [Seen<'_>; 2]| Survey::of(&detector, &servers, NOW).pool;
    assert_eq!(pool([server(Health::Serving, 100), server(Health::Unreachable, 0)]), 1.0);
    assert_eq!(pool([server(Health::Unreachable, 100), server(Health::Unreachable, 0)]), 0.5);
}
