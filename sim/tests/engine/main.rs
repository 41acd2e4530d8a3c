//! The engine in virtual time against public data from the shared data directory (or `ENDPOINT_PICKER_SHARED`). Where it
//! is absent these tests say so and pass.

// Lets the lints see that all of it is tests.
#![cfg(test)]

mod calibration;
mod trace;

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;

use flate2::read::GzDecoder;

/// Lines of a file in the shared data directory; `None`, with a word about it, if it is not there.
fn shared_lines(file: &str) -> Option<Vec<String>> {
    let shared = std::env::var_os("ENDPOINT_PICKER_SHARED")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared"), PathBuf::from);
    let path = shared.join("data").join(file);
    let Ok(opened) = File::open(&path) else {
        println!("skipped: no {}", path.display());
        return None;
    };
    let reader: Box<dyn Read> = if file.ends_with(".gz") { Box::new(GzDecoder::new(opened)) } else { Box::new(opened) };
    Some(BufReader::new(reader).lines().map(|line| line.expect("text")).collect())
}
