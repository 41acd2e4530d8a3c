//! The core on wasm32, under Node: pointer width and hashes are those of the native build.
#![cfg(target_family = "wasm")]

use std::time::Duration;

use endpoint_picker::clock::Timestamp;
use wasm_bindgen_test::wasm_bindgen_test;

#[wasm_bindgen_test]
fn a_point_in_time_is_wider_than_a_pointer() {
    let start = Timestamp(1 << 40);
    assert_eq!(start.plus(Duration::from_millis(5)).since(start), Duration::from_millis(5));
}
