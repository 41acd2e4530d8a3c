//! A configuration is taken or refused as a whole, with a message that says where it is wrong.

use serde_json::json;

use crate::fixture::{ms, pool, with};
use crate::proxy::Proxy;

/// What a plugin with this configuration logs when it refuses it.
fn refused(configuration: impl AsRef<[u8]>) -> String {
    let proxy = Proxy::envoy("");
    let roles = ["picker", "scraper"].map(|role| {
        let started = proxy.start(role, &configuration);
        started.err().unwrap_or_else(|| panic!("accepted: {}", String::from_utf8_lossy(configuration.as_ref())))
    });
    assert_eq!(roles[0], roles[1], "both roles read the same file");
    let [message, _] = roles;
    message
}

#[test]
fn a_mistake_is_named_with_its_place() {
    let endpoints = |list| json!({ "pool": { "endpoints": list } });
    let picker = json!({ "type": "random-picker" });
    let negative = json!({ "scorers": [{ "type": "queue-scorer", "weight": -1 }], "picker": picker });
    for (configuration, place) in [
        (with(pool(2), "retries", json!(3)), "retries"),
        (with(pool(2), "profile", negative), "profile.scorers[0].weight"),
        (endpoints(json!([{ "address": "10.0.0.1:80" }, { "address": "10.0.0.1:80" }])), "pool.endpoints[1].address"),
        (endpoints(json!([{ "address": "vllm.example:8000" }])), "pool.endpoints[0].address"),
        (endpoints(json!([{ "address": "10.0.0.1:80", "weight": 1 }])), "pool.endpoints[0].weight"),
        (endpoints(json!([])), "pool.endpoints"),
        (with(pool(2), "profile", json!({ "scorers": [] })), "profile"),
        (with(pool(2), "failure_mode", json!("fail-maybe")), "failure_mode"),
        (with(pool(2), "scrape", json!({ "interval": "1ms" })), "scrape.interval"),
    ] {
        let message = refused(configuration.to_string());
        assert!(message.starts_with("configuration refused: "), "{message}");
        assert!(message.contains(place), "{place} is not named: {message}");
    }
}

#[test]
fn two_pickers_are_refused() {
    let two = pool(2).to_string().replacen(
        '{',
        r#"{"profile":{"picker":{"type":"random-picker"},"picker":{"type":"max-score-picker"}},"#,
        1,
    );
    assert!(refused(two).contains("picker"));
}

#[test]
fn what_is_no_configuration_is_refused() {
    for text in ["", "{", "null", "[]", "\u{feff}", "pool: {}"] {
        refused(text);
    }
    for bytes in [&b"\xff\xfe"[..], &[0; 64], &[0xff; 64], b"\x0a\x05pool", b"{\"pool\":\"\xff\"}"] {
        refused(bytes);
    }
}

#[test]
fn a_root_id_that_is_no_role_is_refused_and_the_roles_are_named() {
    let proxy = Proxy::envoy("");
    for id in ["", "scrapper", "my_root_id"] {
        let message = proxy.start(id, pool(2).to_string()).err().expect("accepted");
        assert!(message.contains(&format!("`{id}`")) && message.contains("scraper, picker"), "{message}");
    }
}

#[test]
fn a_refused_plugin_and_one_that_is_only_tried_leave_no_trace() {
    let proxy = Proxy::envoy(pool(2));
    proxy.scraper().traps();
    proxy.worker().traps();
    let _ = proxy.start("picker", "{}");
    proxy.run_for(ms(3_000));
    assert!(proxy.scrapes().is_empty());
    assert!(proxy.world().shared.keys().is_empty());
    assert!(proxy.world().metrics.is_empty());
}
