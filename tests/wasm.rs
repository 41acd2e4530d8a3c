//! The core on wasm32, under Node: pointer width and hashes are those of the native build.
#![cfg(target_family = "wasm")]

mod golden;

use std::time::Duration;

use endpoint_picker::clock::Timestamp;
use endpoint_picker::config;
use endpoint_picker::envelope;
use endpoint_picker::scrape::{self, EngineSpec};
use wasm_bindgen_test::wasm_bindgen_test;

#[wasm_bindgen_test]
fn a_point_in_time_is_wider_than_a_pointer() {
    let start = Timestamp(1 << 40);
    assert_eq!(start.plus(Duration::from_millis(5)).since(start), Duration::from_millis(5));
}

#[wasm_bindgen_test]
fn prompts_hash_as_they_do_natively() {
    golden::check();
}

#[wasm_bindgen_test]
fn a_sealed_value_has_the_same_bytes() {
    assert_eq!(envelope::seal(b"key", 0x0102, b"load")[4..12], [0xf1, 0x3f, 0x5a, 0xbd, 0x0d, 0x10, 0x07, 0xe2]);
}

#[wasm_bindgen_test]
fn metrics_read_the_same() {
    let text = b"vllm:num_requests_waiting{engine=\"0\"} 3.0\nvllm:kv_cache_usage_perc{engine=\"0\"} 2.5e-01\n";
    let reading = scrape::read(text, &EngineSpec::auto()).unwrap();
    assert_eq!((reading.waiting, reading.kv_usage), (Some(3), Some(0.25)));
}

#[wasm_bindgen_test]
fn a_configuration_reads_the_same() {
    let json = br#"{"pool":{"endpoints":[{"address":"10.0.0.1:8000"}]},"request":{"max_body_bytes":4294967296}}"#;
    let error = config::load(json).unwrap_err().to_string();
    assert!(error.contains("from 1024 to 16777216"), "{error}");
}
