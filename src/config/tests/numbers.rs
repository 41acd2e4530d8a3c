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

/// Envoy makes text of every fraction that is written in YAML.
#[test]
fn fractions_may_come_as_text() {
    let json = with(
        r#", "profile": {"filters": [{"type": "prefix-cache-affinity-filter", "parameters": {"affinityThreshold": "0.8"}}],
            "scorers": [{"type": "queue-scorer", "weight": "2.5"}], "picker": {"type": "max-score-picker"}}"#,
    );
    assert!(format!("{:?}", good(&json).profile).contains("2.5"));
    let scorer = |weight: &str| {
        with(&format!(
            r#", "profile": {{"scorers": [{{"type": "queue-scorer", "weight": {weight}}}], "picker": {{"type": "max-score-picker"}}}}"#
        ))
    };
    for weight in [r#""heavy""#, r#""nan""#, r#""inf""#, r#""""#] {
        let message = format!("profile.scorers[0].weight: invalid type: string {weight}, expected f64");
        refused(scorer(weight), &message);
    }
}
