//! Modules that Envoy runs for a measurement.

use std::path::PathBuf;

use anyhow::{Result, bail};
use serde_json::{Value, json};

/// A filter that does nothing.
pub(crate) const EMPTY_FILTER: &str = "empty_filter";

/// The benchmark of decisions.
pub(crate) const DECISION: &str = "decision_guest";

/// Envoy's configuration of the module with this name, in a VM of its own.
pub(crate) fn plugin(module: &str) -> Result<Value> {
    Ok(json!({
        "name": module,
        "root_id": module,
        "vm_config": {
            "vm_id": module,
            "runtime": "envoy.wasm.runtime.v8",
            "code": { "local": { "filename": built(module)? } },
        },
    }))
}

/// Where `build.sh` puts it.
fn built(module: &str) -> Result<PathBuf> {
    let path = testbed::root().join(format!("target/bench/{module}.wasm"));
    if path.is_file() { Ok(path) } else { bail!("{} is not there: run ./build.sh bench", path.display()) }
}
