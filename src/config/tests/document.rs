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
    refused(b"{\"pool\": \"\xff\"}", "the configuration is not JSON: invalid unicode code point at line 1 column 11");
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
    refused(
        "{}",
        r#"`pool` is missing, or `pools` with at least one; the least is {"pool": {"endpoints": [{"address": "10.0.0.1:8000"}]}}"#,
    );
    refused(r#"{"pool": {}}"#, "pool.endpoints: at least one endpoint is needed, or `discovery`");
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
         `metrics_path`, `draining`, `labels`",
    );
    refused(
        with(r#", "wieghts": {}"#),
        "wieghts: unknown field; known here: `pool`, `pools`, `model_headers`, `model_choice`, `scrape`, `request`, `prefix`, `ledger`, `gateways`, `failure_mode`, `explain`, `model_rewrites`, `subset_hint`, `served_header`, `health_path`, `profile`, `disaggregation`",
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
    refused(r#"{"pool": {"endpoints": {}}}"#, "pool.endpoints: invalid type: object, expected a list");
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

#[test]
fn a_header_that_is_not_for_us() {
    for name in ["", "x-", "content-length", ":status", "x-a b", "x-\u{fc}", &format!("x-{}", "a".repeat(63))] {
        let json = with(&format!(r#", "served_header": "{name}""#));
        let fault = "is not a header name such as x-served-by, of x- and 1 to 62 letters, digits, - and _";
        refused(json, &format!("served_header: {name:?} {fault}"));
    }
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
