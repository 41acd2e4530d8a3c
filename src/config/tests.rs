use super::*;
use crate::scrape::{CustomSignals, Engine, EngineSpec, MetricSpec};
use std::time::Duration;

/// The smallest configuration, with `more` after the pool.
fn with(more: &str) -> String {
    format!(r#"{{"pool": {{"endpoints": [{{"address": "10.0.0.1:8000"}}]}}{more}}}"#)
}

fn endpoints(list: &str) -> String {
    format!(r#"{{"pool": {{"endpoints": [{list}]}}}}"#)
}

fn address(text: &str) -> String {
    endpoints(&format!(r#"{{"address": "{text}"}}"#))
}

#[track_caller]
fn good(json: &str) -> Config {
    load(json.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{json}"))
}

/// Asserts that `json` is refused with exactly this message.
#[track_caller]
fn refused(json: impl AsRef<[u8]>, message: &str) {
    match load(json.as_ref()) {
        Ok(config) => panic!("accepted: {config:?}"),
        Err(error) => assert_eq!(error.to_string(), message),
    }
}

mod accepted {
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
            "failure_mode": "fail-open",
            "profile": {"picker": {"type": "random-picker"}}
        }"#,
        );
        let [a, b, c] = &config.pool.endpoints[..] else { panic!("three endpoints") };
        assert_eq!(config.pool.name, "chat-7b");
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
}

mod document {
    use super::*;

    #[test]
    fn empty_text() {
        for text in ["", " \n"] {
            let least =
                r#"the configuration is empty; the least is {"pool": {"endpoints": [{"address": "10.0.0.1:8000"}]}}"#;
            refused(text, least);
        }
    }

    #[test]
    fn not_json() {
        refused("pool:\n  name: x", "the configuration is not JSON: expected value at line 1 column 1");
        refused(r#"{"pool": {"#, "the configuration is not JSON: EOF while parsing an object at line 1 column 10");
        refused(
            &with("").as_bytes()[..30],
            "the configuration is not JSON: EOF while parsing a string at line 1 column 30",
        );
        refused(with("") + "}", "the configuration is not JSON: trailing characters at line 1 column 56");
        refused(
            b"{\"pool\": \"\xff\"}",
            "the configuration is not JSON: invalid unicode code point at line 1 column 11",
        );
        refused("[".repeat(200), "the configuration is not JSON: recursion limit exceeded at line 1 column 128");
    }

    #[test]
    fn not_an_object() {
        for text in ["[]", "null", "5", r#""{\"pool\": {}}""#] {
            let message = r#"the configuration must be a JSON object, such as {"pool": {"endpoints": [{"address": "10.0.0.1:8000"}]}}"#;
            refused(text, message);
        }
    }

    #[test]
    fn no_pool() {
        refused("{}", "missing field `pool`");
        refused(r#"{"pool": {}}"#, "pool: missing field `endpoints`");
        refused(endpoints("{}"), "pool.endpoints[0]: missing field `address`");
    }

    #[test]
    fn unknown_field() {
        refused(
            with(r#", "scrape": {"intervall": "1s"}"#),
            "scrape.intervall: unknown field; did you mean `interval`? Known here: `interval`, `stale_after`, \
             `unhealthy_after`, `cluster`, `max_text_bytes`, `engines`",
        );
        refused(
            endpoints(r#"{"adress": "10.0.0.1:8000"}"#),
            "pool.endpoints[0].adress: unknown field; did you mean `address`? Known here: `address`, `engine`, \
             `metrics_path`, `labels`",
        );
        refused(
            with(r#", "wieghts": {}"#),
            "wieghts: unknown field; known here: `pool`, `scrape`, `request`, `prefix`, `ledger`, `failure_mode`, `profile`",
        );
    }

    #[test]
    fn key_written_twice() {
        refused(
            with(r#", "scrape": {"interval": "1s", "interval": "2s"}"#),
            r#"scrape: the key "interval" is written twice"#,
        );
        let labels = r#"{"address": "10.0.0.1:8000", "labels": {"a": "1", "a": "2"}}"#;
        refused(endpoints(labels), r#"pool.endpoints[0].labels: the key "a" is written twice"#);
    }

    #[test]
    fn wrong_type() {
        let number = "expected a whole number from 1 to 1000";
        for (value, is) in [(r#""3""#, r#"string "3""#), ("true", "boolean `true`"), ("[]", "list"), ("{}", "object")] {
            let json = with(&format!(r#", "scrape": {{"unhealthy_after": {value}}}"#));
            refused(json, &format!("scrape.unhealthy_after: invalid type: {is}, {number}"));
        }
        refused(with(r#", "scrape": []"#), "scrape: invalid type: list, expected an object");
        refused(with(r#", "scrape": null"#), "scrape: invalid type: null, expected an object");
        refused(r#"{"pool": "10.0.0.1:8000"}"#, r#"pool: invalid type: string "10.0.0.1:8000", expected an object"#);
        refused(r#"{"pool": {"endpoints": {}}}"#, "pool.endpoints: invalid type: object, expected a list of objects");
        let bare = r#"pool.endpoints[0]: invalid type: string "10.0.0.1:8000", expected an object"#;
        refused(endpoints(r#""10.0.0.1:8000""#), bare);
        refused(
            endpoints(r#"{"address": 8000}"#),
            "pool.endpoints[0].address: invalid type: integer `8000`, expected a string",
        );
        let label = r#"{"address": "10.0.0.1:8000", "labels": {"rank": 1}}"#;
        refused(endpoints(label), "pool.endpoints[0].labels.rank: invalid type: integer `1`, expected a string");
    }

    #[test]
    fn unknown_value() {
        refused(
            with(r#", "failure_mode": "fail-closed""#),
            r#"failure_mode: unknown value "fail-closed"; did you mean `fail-close`? Known here: `fail-open`, `fail-close`"#,
        );
    }

    /// The message ends in a log line.
    #[test]
    fn a_quoted_value_of_any_length_gives_a_short_message() {
        for json in [address(&"ü".repeat(100_000)), with(&format!(r#", "{}": 1"#, "x".repeat(100_000)))] {
            let text = load(json.as_bytes()).unwrap_err().to_string();
            assert!(text.len() < 3000, "{}", text.len());
        }
    }

    #[test]
    fn no_input_panics() {
        let text = with(r#", "scrape": {"interval": "1s", "unhealthy_after": 3.0}, "failure_mode": "fail-open""#);
        for cut in 0..text.len() {
            assert!(load(&text.as_bytes()[..cut]).is_err(), "cut at {cut}");
            let mut bytes = text.clone().into_bytes();
            for byte in [0, b'"', b'[', b'0', 0xff] {
                bytes[cut] = byte;
                let _ = load(&bytes);
            }
        }
    }
}

mod numbers {
    use super::*;

    #[test]
    fn out_of_range() {
        for text in ["1023", "16777217", "-1", "1024.5", "1e300", "99999999999999999999", "4294968320"] {
            let shown = text.replace("99999999999999999999", "1e20");
            refused(
                with(&format!(r#", "request": {{"max_body_bytes": {text}}}"#)),
                &format!("request.max_body_bytes: {shown} is not a whole number from 1024 to 16777216"),
            );
        }
    }

    #[test]
    fn duration_without_unit() {
        let message = r#"scrape.interval: 200 has no unit: write "200ms" or "200s""#;
        refused(with(r#", "scrape": {"interval": 200}"#), message);
        refused(with(r#", "scrape": {"interval": 200.0}"#), message);
        let message = r#"scrape.interval: "200" is not a duration such as "200ms", "1.5s" or "2m""#;
        refused(with(r#", "scrape": {"interval": "200"}"#), message);
    }

    #[test]
    fn bad_duration() {
        for text in ["", "fast", "-1s", "1 s", "1d"] {
            refused(
                with(&format!(r#", "scrape": {{"interval": "{text}"}}"#)),
                &format!(r#"scrape.interval: "{text}" is not a duration such as "200ms", "1.5s" or "2m""#),
            );
        }
        refused(with(r#", "scrape": {"interval": "10ms"}"#), "scrape.interval: 10ms is out of range: 20ms to 1m");
        refused(with(r#", "scrape": {"interval": "61s"}"#), "scrape.interval: 61s is out of range: 20ms to 1m");
        refused(
            with(r#", "scrape": {"interval": -5}"#),
            r#"scrape.interval: invalid type: integer `-5`, expected a duration such as "200ms", "1.5s" or "2m""#,
        );
    }

    #[test]
    fn signals_that_would_be_stale_between_two_scrapes() {
        refused(
            with(r#", "scrape": {"interval": "1s", "stale_after": "200ms"}"#),
            "scrape.stale_after: 200ms is less than twice `interval` (1s); at least 2s is needed",
        );
    }
}

mod pool {
    use super::*;

    #[test]
    fn no_endpoint_or_too_many() {
        refused(endpoints(""), "pool.endpoints: at least one endpoint is needed");
        let many: Vec<String> = (1..=1025).map(|port| format!(r#"{{"address": "10.0.0.1:{port}"}}"#)).collect();
        refused(endpoints(&many.join(",")), "pool.endpoints: 1025 endpoints are more than 1024");
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
            r#"pool.endpoints[0].engine: unknown engine "vLLM"; did you mean `vllm`? Known here: `auto`, `llama.cpp`, `lmdeploy`, `sglang`, `tgi`, `triton-tensorrt-llm`, `trtllm-serve`, `vllm`"#,
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
}

mod engines {
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
}

#[test]
fn the_example_of_the_reference_loads() {
    good(include_str!("example.json"));
}
