use super::*;

#[test]
fn one_endpoint_is_a_configuration() {
    let config = good(&with(""));
    assert_eq!(config.pool.name, "default");
    let endpoint = &config.pool.endpoints[0];
    assert_eq!(endpoint.address.to_string(), "10.0.0.1:8000");
    assert_eq!(*endpoint.spec, EngineSpec::auto());
    assert_eq!(endpoint.metrics_path, "/metrics");
    assert!(endpoint.labels.is_empty());
    let scrape = Scrape {
        interval: Duration::from_millis(100),
        stale_after: Duration::from_secs(2),
        unhealthy_after: 3,
        cluster: "endpoint_picker_scrape".to_owned(),
        max_text_bytes: 8_388_608,
    };
    assert_eq!(config.scrape, scrape);
    assert_eq!(config.request, Request { max_body_bytes: 262_144 });
    let prefix = Prefix { block_tokens: 64, max_blocks: 2048, capacity_blocks: 7812, max_entries: 500_000 };
    assert_eq!(config.prefix, prefix);
    assert_eq!(config.failure_mode, FailureMode::FailClose);
    assert_eq!((config.subset_hint, config.served_header, config.health_path), (SubsetHint::Honour, None, None));
    assert!(config.pool.passive_health);
}

#[test]
fn an_object_given_in_part_keeps_its_other_defaults() {
    let config = good(&with(r#", "scrape": {"unhealthy_after": 5}, "prefix": {"max_blocks": 16}"#));
    let default = good(&with(""));
    assert_eq!(config.scrape, Scrape { unhealthy_after: 5, ..default.scrape });
    assert_eq!(config.prefix, Prefix { max_blocks: 16, ..default.prefix });
    assert_eq!(config.request, default.request);
}

#[test]
fn every_field_is_taken() {
    let config = good(
        r#"{
        "pool": {"name": "chat-7b", "endpoints": [
            {"address": "10.0.0.1:8000", "engine": "sglang", "metrics_path": "/m?x=1", "labels": {"role": "decode"}},
            {"address": "[2001:db8:0::1]:8001", "engine": "trtllm-serve"},
            {"address": "10.0.0.3:8000", "engine": "mine"}]},
        "scrape": {"interval": "0.2s", "stale_after": "1m", "unhealthy_after": 1, "cluster": "c", "max_text_bytes": 4096,
            "engines": [{"name": "mine", "metrics_path": "/own", "waiting": "q{k=\"waiting\"}", "running": "r", "lora": "l"}]},
        "request": {"max_body_bytes": 1024},
        "prefix": {"block_tokens": 16, "max_blocks": 1, "capacity_blocks": 9, "max_entries": 1000},
        "failure_mode": "fail-open", "subset_hint": "ignore", "served_header": "X-Served", "health_path": "/-/ready",
        "profile": {"picker": {"type": "random-picker"}}
    }"#,
    );
    let [a, b, c] = &config.pool.endpoints[..] else { panic!("three endpoints") };
    assert_eq!(config.pool.name, "chat-7b");
    assert_eq!(config.subset_hint, SubsetHint::Ignore);
    assert_eq!((config.served_header.as_deref(), config.health_path.as_deref()), (Some("x-served"), Some("/-/ready")));
    assert_eq!((&*a.spec, &*a.metrics_path), (&EngineSpec::builtin(Engine::Sglang), "/m?x=1"));
    assert_eq!(a.labels["role"], "decode");
    assert_eq!(b.address.to_string(), "[2001:db8::1]:8001");
    assert_eq!((&*b.spec, &*b.metrics_path), (&EngineSpec::builtin(Engine::TrtllmServe), "/prometheus/metrics"));
    let signals = CustomSignals {
        waiting: Some(MetricSpec::parse(r#"q{k="waiting"}"#).unwrap()),
        running: Some(MetricSpec::parse("r").unwrap()),
        lora: Some(MetricSpec::parse("l").unwrap()),
        ..CustomSignals::default()
    };
    assert_eq!((&*c.spec, &*c.metrics_path), (&EngineSpec::custom(signals), "/own"));
    let scrape = Scrape {
        interval: Duration::from_millis(200),
        stale_after: Duration::from_secs(60),
        unhealthy_after: 1,
        cluster: "c".to_owned(),
        max_text_bytes: 4096,
    };
    assert_eq!(config.scrape, scrape);
    assert_eq!(config.request.max_body_bytes, 1024);
    let prefix = Prefix { block_tokens: 16, max_blocks: 1, capacity_blocks: 9, max_entries: 1000 };
    assert_eq!(config.prefix, prefix);
    assert_eq!(config.failure_mode, FailureMode::FailOpen);
}

/// A Protobuf `Struct` knows no integers.
#[test]
fn whole_numbers_may_be_written_as_floats() {
    for text in ["2048", "2048.0", "2.048e3", "20480e-1"] {
        let config = good(&with(&format!(r#", "request": {{"max_body_bytes": {text}}}"#)));
        assert_eq!(config.request.max_body_bytes, 2048, "{text}");
    }
}

#[test]
fn a_slow_interval_stretches_the_default_staleness_only() {
    let scrape = good(&with(r#", "scrape": {"interval": "5s"}"#)).scrape;
    assert_eq!(scrape.stale_after, Duration::from_secs(10));
    let scrape = good(&with(r#", "scrape": {"interval": "5s", "stale_after": "10s"}"#)).scrape;
    assert_eq!(scrape.stale_after, Duration::from_secs(10));
}

#[test]
fn assumed_capacity_is_the_same_in_tokens_for_each_block_size() {
    let prefix = good(&with(r#", "prefix": {"block_tokens": 16}"#)).prefix;
    assert_eq!(prefix.capacity_blocks, 31_250);
}

#[test]
fn ranges_include_their_ends() {
    for (section, field, ends) in [
        ("scrape", "interval", [r#""20ms""#, r#""1m""#]),
        ("scrape", "stale_after", [r#""200ms""#, r#""10m""#]),
        ("scrape", "unhealthy_after", ["1", "1000"]),
        ("request", "max_body_bytes", ["1024", "16777216"]),
        ("prefix", "block_tokens", ["16", "1024"]),
    ] {
        for end in ends {
            good(&with(&format!(r#", "{section}": {{"{field}": {end}}}"#)));
        }
    }
    let many: Vec<String> = (1..=1024).map(|port| format!(r#"{{"address": "10.0.0.1:{port}"}}"#)).collect();
    assert_eq!(good(&endpoints(&many.join(","))).pool.endpoints.len(), 1024);
}
