//! Promises of the body reader that hold across builds and for requests captured from real servers.

mod golden;

use std::{env, fs, path::PathBuf};

use endpoint_picker::prompt::{Blocks, Dialect, read};

#[test]
fn hashes_are_the_ones_other_builds_compute() {
    golden::check();
}

/// The estimate against what vLLM and llama.cpp counted themselves, for prompts they answered.
#[test]
fn the_token_estimate_of_captured_requests_is_of_the_right_size() {
    let shared = env::var_os("ENDPOINT_PICKER_SHARED")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared"), PathBuf::from);
    let Ok(files) = fs::read_dir(shared.join("data/api")) else {
        println!("skipped: no shared data directory");
        return;
    };
    let mut compared = 0;
    for file in files {
        let text = fs::read_to_string(file.unwrap().path()).unwrap();
        for exchange in text.split("### ") {
            let mut lines = exchange.lines().filter_map(|line| line.strip_prefix("> "));
            let Some(path) = lines.next().and_then(|line| line.split(' ').nth(1)) else { continue };
            let Some(dialect) = Dialect::of_path(path.as_bytes()) else { continue };
            let prompt = read(dialect, lines.next().unwrap_or_default().as_bytes(), None, &Blocks::default());
            let counted = exchange
                .split("\"prompt_tokens\":")
                .nth(1)
                .and_then(|rest| rest.split(|char: char| !char.is_ascii_digit()).next()?.parse::<u32>().ok());
            let Some(counted) = counted.filter(|tokens| *tokens > 100) else { continue };
            let ratio = f64::from(prompt.tokens) / f64::from(counted);
            println!("{path}: {} estimated, {counted} counted", prompt.tokens);
            assert!((0.3..3.0).contains(&ratio), "{path}: {} estimated, {counted} counted", prompt.tokens);
            compared += 1;
        }
    }
    assert!(compared > 10, "{compared} requests were compared");
}
