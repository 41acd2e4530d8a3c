use super::*;

#[test]
fn no_endpoint_or_too_many() {
    refused(endpoints(""), "pool.endpoints: at least one endpoint is needed, or `discovery`");
    let many: Vec<String> = (1..=1025).map(|port| format!(r#"{{"address": "10.0.0.1:{port}"}}"#)).collect();
    refused(endpoints(&many.join(",")), "pool.endpoints: 1025 endpoints are more than 1024");
}

#[test]
fn discovery() {
    let with = |fields: &str| {
        let least = r#""cluster": "model_servers", "admin_cluster": "admin""#;
        format!(r#"{{"pool": {{"discovery": {{{least}{fields}}}}}}}"#)
    };
    let pool = load(with("").as_bytes()).unwrap().pool;
    let discovery = pool.discovery.unwrap();
    assert_eq!((pool.endpoints.len(), discovery.interval.as_secs(), &*discovery.metrics_path), (0, 1, "/metrics"));
    let named = load(with(r#", "engine": "trtllm-serve", "interval": "5s""#).as_bytes()).unwrap().pool.discovery;
    assert_eq!(named.map(|named| named.metrics_path).as_deref(), Some("/prometheus/metrics"));

    let place = "pool.discovery";
    for (fields, message) in [
        (r#", "interval": "500ms""#, ".interval: 500ms is out of range: 1s to 60m".to_owned()),
        (r#", "engine": "vLLM""#, r#".engine: unknown engine "vLLM"; did you mean `vllm`? Known here: "#.to_owned()),
        (r#", "labels": {"a": 1}"#, ".labels.a: invalid type: integer `1`, expected a string".to_owned()),
        (
            r#", "name": "x""#,
            ".name: unknown field; known here: `cluster`, `admin_cluster`, `interval`, `engine`, \
                             `metrics_path`, `labels`"
                .to_owned(),
        ),
    ] {
        let error = load(with(fields).as_bytes()).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{place}{message}")), "{error}");
    }
    refused(r#"{"pool": {"discovery": {"cluster": "a"}}}"#, "pool.discovery: missing field `admin_cluster`");
    refused(r#"{"pool": {"discovery": []}}"#, "pool.discovery: invalid type: list, expected an object");
    let nameless = r#"{"pool": {"discovery": {"cluster": "", "admin_cluster": "admin"}}}"#;
    refused(nameless, "pool.discovery.cluster: the name of a cluster is needed");
}

#[test]
fn draining_label() {
    for label in ["", "=drain"] {
        let json =
            format!(r#"{{"pool": {{"endpoints": [{{"address": "10.0.0.1:80"}}], "draining_label": "{label}"}}}}"#);
        refused(json, "pool.draining_label: a label is needed, such as state=drain");
    }
}

#[test]
fn duplicate_endpoint() {
    refused(
        endpoints(r#"{"address": "10.0.0.1:80"}, {"address": "10.0.0.2:80"}, {"address": "10.0.0.1:80"}"#),
        "pool.endpoints[2].address: 10.0.0.1:80 is the address of pool.endpoints[0] already",
    );
    refused(
        endpoints(r#"{"address": "[::1]:80"}, {"address": "[0:0:0:0:0:0:0:1]:80"}"#),
        "pool.endpoints[1].address: [::1]:80 is the address of pool.endpoints[0] already",
    );
}

#[test]
fn hostname() {
    for name in ["model-a:8000", "localhost:8000", "vllm.svc.cluster.local:80", "model_a"] {
        refused(
            address(name),
            &format!(
                r#"pool.endpoints[0].address: "{name}" is a name; ip:port is needed, such as 10.0.0.1:8000, because the proxy compares the picked address with the resolved addresses of its cluster and silently balances by itself where none is equal"#
            ),
        );
    }
}

#[test]
fn no_usable_port() {
    let v4 = "has no port; ip:port is needed, such as 10.0.0.1:8000";
    let v6 = "has no port; for IPv6 that is [ip]:port, such as [2001:db8::1]:8000";
    let range = "has no such port; a port is from 1 to 65535";
    for (text, fault) in [
        ("10.0.0.1", v4),
        ("10.0.0.1:", v4),
        ("::1", v6),
        ("[::1]", v6),
        ("2001:db8::1:8000", v6),
        ("10.0.0.1:0", "has port 0; a port from 1 to 65535 is needed"),
        ("10.0.0.1:70000", range),
        ("[::1]:70000", range),
    ] {
        refused(address(text), &format!(r#"pool.endpoints[0].address: "{text}" {fault}"#));
    }
}

#[test]
fn not_an_address() {
    let other = "is not an address; ip:port is needed, such as 10.0.0.1:8000 or [2001:db8::1]:8000";
    let url = "is a URL or has a path; ip:port alone is needed, such as 10.0.0.1:8000";
    let space = "has a space before or after it";
    for (text, fault) in [
        ("", other),
        (":8000", other),
        ("10.0.0:8000", other),
        ("10.0.0.256:8000", other),
        ("10.0.0.1:x", other),
        ("10.0.0.1:80,10.0.0.2:80", other),
        ("http://10.0.0.1:8000", url),
        ("10.0.0.1:8000/v1", url),
        ("10.0.0.1:8000 ", space),
        (" 10.0.0.1:8000", space),
    ] {
        refused(address(text), &format!(r#"pool.endpoints[0].address: "{text}" {fault}"#));
    }
}

#[test]
fn unknown_engine() {
    refused(
        endpoints(r#"{"address": "10.0.0.1:8000", "engine": "vLLM"}"#),
        r#"pool.endpoints[0].engine: unknown engine "vLLM"; did you mean `vllm`? Known here: `auto`, `vllm`, `sglang`, `trtllm-serve`, `triton-tensorrt-llm`, `tgi`, `llama.cpp`, `lmdeploy`"#,
    );
}

#[test]
fn bad_name() {
    for name in ["", "Default", "a b", &"x".repeat(33)] {
        refused(
            format!(r#"{{"pool": {{"name": "{name}", "endpoints": []}}}}"#),
            &format!(r#"pool.name: "{name}" is not a name of 1 to 32 of the characters a-z, 0-9, - and _"#),
        );
    }
}

#[test]
fn bad_metrics_path() {
    for path in ["", "metrics", "/a b", "/ü"] {
        refused(
            endpoints(&format!(r#"{{"address": "10.0.0.1:8000", "metrics_path": "{path}"}}"#)),
            &format!(
                r#"pool.endpoints[0].metrics_path: "{path}" is not a path such as /metrics, of at most 256 bytes without spaces"#
            ),
        );
    }
}
