use super::*;

fn engines(list: &str) -> String {
    with(&format!(r#", "scrape": {{"engines": [{list}]}}"#))
}

#[test]
fn bad_metric() {
    let json = engines(r#"{"name": "a", "waiting": "w"}, {"name": "b", "running": "q{k="}"#);
    let reason = MetricSpec::parse("q{k=").unwrap_err();
    let message =
        format!(r#"scrape.engines[1].running: "q{{k=" is not a metric as name or name{{label="value"}}: {reason}"#);
    refused(json, &message);
}

#[test]
fn engine_without_metrics() {
    refused(
        engines(r#"{"name": "a"}"#),
        "scrape.engines[0]: the engine a names no metric; at least one of `waiting`, `running`, `kv_usage`, \
         `block_size`, `num_blocks`, `lora` is needed",
    );
}

#[test]
fn engine_named_twice() {
    let taken =
        |i, name| format!("scrape.engines[{i}].name: an engine named {name} is already there; choose another name");
    refused(engines(r#"{"name": "vllm", "waiting": "w"}"#), &taken(0, "vllm"));
    refused(engines(r#"{"name": "auto", "waiting": "w"}"#), &taken(0, "auto"));
    refused(engines(r#"{"name": "a", "waiting": "w"}, {"name": "a", "waiting": "w"}"#), &taken(1, "a"));
}

#[test]
fn no_cluster() {
    refused(with(r#", "scrape": {"cluster": ""}"#), "scrape.cluster: the name of a cluster is needed");
}
