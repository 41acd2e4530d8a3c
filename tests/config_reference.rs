//! The committed reference is what the types say.

use endpoint_picker::config::reference;
use std::fs;

#[track_caller]
fn current(file: &str, generated: &str) {
    let committed = fs::read_to_string(format!("{}/docs/{file}", env!("CARGO_MANIFEST_DIR"))).unwrap_or_default();
    assert!(
        committed == generated,
        "docs/{file} differs from the types in src/config; write it anew with\n  \
         cargo run --no-default-features --features schema --example config-reference"
    );
}

#[test]
fn the_reference_is_up_to_date() {
    current("configuration.md", &reference::markdown());
}

#[test]
fn the_schema_is_up_to_date() {
    current("configuration.schema.json", &format!("{:#}\n", reference::schema()));
}
