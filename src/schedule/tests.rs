//! Whole decisions that the endpoint picker's own tests have, with its blend of scorers at weight 1.

use serde_json::{Value, json};

use super::registry::{PICKERS, SCORERS};
use super::*;
use crate::scrape::Lora;

/// Queue, share of the KV cache in use, adapters that run.
type Server = (u32, f64, &'static [&'static str]);

fn blend() -> Profile {
    let parameters = || Value::Object(serde_json::Map::new());
    let scorer = |name| {
        let plugin = SCORERS.iter().find(|plugin| plugin.name == name).unwrap();
        Weighted { name: plugin.name, weight: 1.0, scorer: plugin.build(parameters()).unwrap() }
    };
    Profile {
        filters: Vec::new(),
        scorers: ["queue-scorer", "kv-cache-utilization-scorer", "prefix-cache-scorer", "lora-affinity-scorer"]
            .map(scorer)
            .into(),
        picker: ("max-score-picker", PICKERS[0].build(json!({ "maxNumOfEndpoints": 9 })).unwrap()),
    }
}

/// The decision for a request for `model`, of which nothing is cached, among servers with room for `max` adapters.
fn decide(model: &str, max: u32, servers: &[Server]) -> Decision {
    let adapters = |(.., names): &Server| Lora {
        max,
        running: names.iter().map(|name| name.as_bytes().into()).collect(),
        waiting: Vec::new(),
    };
    let adapters: Vec<_> = servers.iter().map(adapters).collect();
    let candidates =
        servers.iter().zip(&adapters).enumerate().map(|(index, ((waiting, kv_usage, _), lora))| Candidate {
            index,
            waiting: Some(*waiting),
            kv_usage: Some(*kv_usage),
            lora: Some(lora),
            ..Candidate::named("10.0.0.1:8000")
        });
    let request = Request { model: Some(model.as_bytes()), blocks: 1, block_tokens: 64, ..Request::default() };
    blend().decide(&request, &mut candidates.collect(), &mut Rng::new(1))
}

#[test]
fn the_server_with_the_adapter_wins_among_equals() {
    let servers: [Server; 3] = [(0, 0.2, &["foo", "bar"]), (0, 0.2, &["foo", "critical"]), (10, 0.8, &["foo"])];
    let decision = decide("critical", 2, &servers);
    assert_eq!(decision.ranked[0].index, 1);
    assert!((decision.ranked[0].total - 2.8).abs() < 1e-9, "{decision}");
}

#[test]
fn without_servers_nothing_is_picked() {
    assert_eq!(decide("critical", 2, &[]), Decision::default());
}

#[test]
fn an_adapter_in_place_outweighs_queue_and_cache() {
    const T: &str = "sql-lora";
    for (servers, first) in [
        ([(10, 0.2, &["foo", "bar"][..]), (10, 0.4, &["foo", T]), (10, 0.3, &["foo"])], 1),
        ([(6, 0.2, &["foo", "bar", T]), (0, 0.85, &["foo"]), (10, 0.9, &["foo"])], 0),
        ([(4, 0.2, &["foo", "bar", T]), (4, 0.85, &["foo", T]), (10, 0.9, &["foo"])], 0),
    ] {
        assert_eq!(decide(T, 0, &servers).ranked[0].index, first, "{servers:?}");
    }
}

#[test]
fn who_is_held_back_is_still_there_to_fall_back_to() {
    let json = br#"{"pool":{"endpoints":[{"address":"10.0.0.1:8000"}]},"profile":"least-request"}"#;
    let profile = crate::config::load(json).unwrap().profile;
    let mut failing = Candidate::named("10.0.0.1:8000");
    failing.standing = crate::learned::Standing::Failing;
    let mut candidates = vec![failing, Candidate { index: 1, ..Candidate::named("10.0.0.2:8000") }];
    let decision = profile.decide(&Request::default(), &mut candidates, &mut Rng::new(1));
    let named: Vec<_> = decision.ranked.iter().map(|ranked| ranked.index).collect();
    assert_eq!(named, [1, 0], "the last, and before any that the proxy would choose");
}
