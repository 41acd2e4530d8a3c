//! Where the binaries under test are.

use std::env;
use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::root;

/// The Envoy to run: `ENVOY`, else the one on `PATH`, else what `build.sh` has installed.
pub fn envoy() -> Result<PathBuf> {
    if let Some(given) = env::var_os("ENVOY") {
        return Ok(given.into());
    }
    let installed = root().join(".tools/envoy/bin");
    let folders = env::var_os("PATH").unwrap_or_default();
    let found =
        env::split_paths(&folders).chain([installed]).map(|folder| folder.join("envoy")).find(|path| path.is_file());
    match found {
        Some(path) => Ok(path),
        None => bail!("no Envoy: run ./build.sh test, which installs one, or set ENVOY"),
    }
}

/// The built module.
pub fn module() -> Result<PathBuf> {
    built("dist/endpoint_picker.wasm", "./build.sh")
}

/// The same, but that a request with the header `x-crash` kills its VM.
pub fn crashing_module() -> Result<PathBuf> {
    built("target/crashing.wasm", "./build.sh test")
}

fn built(path: &str, by: &str) -> Result<PathBuf> {
    let path = root().join(path);
    if path.is_file() { Ok(path) } else { bail!("{} is not there: run {by}", path.display()) }
}
