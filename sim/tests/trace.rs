//! A public trace of hashed prompts (Mooncake's conversations: 12,031 requests, 145 million prompt tokens) in virtual
//! time.

// Lets the lints see that all of it is tests.
#![cfg(test)]

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::time::Instant;

use flate2::read::GzDecoder;
use serde::Deserialize;
use sim::engine::{Config, Engine, Event, EventKind, Prompt, Request};

/// Tokens that one hash id stands for.
const SPAN: u32 = 512;

#[derive(Deserialize)]
struct Line {
    /// Milliseconds.
    timestamp: f64,
    input_length: u32,
    output_length: u32,
    hash_ids: Vec<u64>,
}

#[test]
fn endless_cache_hits_what_the_trace_allows() {
    let Some(trace) = load() else { return };
    let pool = 8_000_000;
    let (prompt, cached) = replay(&trace, 1, 1.0, Config { num_gpu_blocks: pool, ..Config::qwen3_32b_tp2() });
    let share = cached as f64 / prompt as f64;
    // 0.374 of the tokens are in a block seen before; full blocks of 16 lose a little of that.
    assert!((0.36..=0.374).contains(&share), "{share} of the prompt tokens were cached");
}

#[test]
fn eight_engines_replay_it_in_seconds() {
    let Some(trace) = load() else { return };
    let started = Instant::now();
    let (prompt, cached) = replay(&trace, 8, 2.0, Config::qwen3_32b_tp2());
    println!(
        "8 engines, round robin, twice the speed: {:.2} of {prompt} tokens cached, {:.1} s for the replay",
        cached as f64 / prompt as f64,
        started.elapsed().as_secs_f64()
    );
}

/// Deals the trace out to `engines` in turn; gives prompt tokens and cached ones.
fn replay(trace: &[Line], engines: usize, speedup: f64, config: Config) -> (u64, u64) {
    let block_size = config.block_size;
    let mut engines: Vec<_> = (0..engines).map(|_| Engine::new(config.clone())).collect();
    let (mut events, mut finished, mut prompt_tokens, mut cached_tokens) = (Vec::new(), 0, 0, 0);
    let mut count = |events: &mut Vec<Event>| {
        for event in events.drain(..) {
            if let EventKind::Finished(outcome) = event.kind {
                finished += 1;
                prompt_tokens += u64::from(outcome.prompt_tokens);
                cached_tokens += u64::from(outcome.cached_tokens);
            }
        }
    };
    let engines_len = engines.len();
    for (at, line) in trace.iter().enumerate() {
        let engine = &mut engines[at % engines_len];
        let now = line.timestamp / 1000.0 / speedup;
        engine.advance(now, &mut events);
        count(&mut events);
        let prompt = Prompt::from_block_ids(&line.hash_ids, SPAN, line.input_length, block_size, 0);
        let request = Request { id: at as u64, prompt, max_tokens: line.output_length, adapter: None };
        engine.submit(now, request).expect("fits");
    }
    for engine in &mut engines {
        engine.advance(f64::INFINITY, &mut events);
        count(&mut events);
        assert_eq!((engine.in_flight(), engine.stats().kv_blocks_used), (0, 0));
    }
    assert_eq!(finished, trace.len());
    (prompt_tokens, cached_tokens)
}

fn load() -> Option<Vec<Line>> {
    let shared = std::env::var_os("ENDPOINT_PICKER_SHARED")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared"), PathBuf::from);
    let Ok(file) = File::open(shared.join("data/traces/mooncake_conversation_trace.jsonl.gz")) else {
        println!("skipped: no trace in the shared data directory {}", shared.display());
        return None;
    };
    let lines = BufReader::new(GzDecoder::new(file)).lines();
    Some(lines.map(|line| serde_json::from_str(&line.expect("text")).expect("a JSON line")).collect())
}
