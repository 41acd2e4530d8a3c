mod accepted;
mod choice;
mod document;
mod engines;
mod numbers;
mod pool;
mod pools;

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

#[test]
fn the_example_of_the_reference_loads() {
    good(include_str!("example.json"));
}
