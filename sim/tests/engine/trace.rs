//! A public trace of hashed prompts (Mooncake's conversations: 12,031 requests, 145 million prompt tokens) in virtual
//! time.

use std::time::Instant;

use serde::Deserialize;
use sim::engine::{Config, Engine, Event, EventKind, Prompt, Request};

use crate::shared_lines;

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
    let config = Config { block_size: SPAN, num_gpu_blocks: 400_000, ..Config::qwen3_32b_tp2() };
    let (prompt, cached) = replay(&trace, 1, 1.0, config);
    let share = cached as f64 / prompt as f64;
    println!("endless cache: {share:.3} of {prompt} prompt tokens cached");
    // 0.374 of the tokens are in a block seen before; a prompt's last block is not full.
    assert!((0.36..=0.374).contains(&share), "{share} of the prompt tokens were cached");
}

#[test]
fn eight_engines_finish_all_of_it() {
    let Some(mut trace) = load() else { return };
    if cfg!(debug_assertions) {
        trace.truncate(3000);
    }
    let started = Instant::now();
    let (prompt, cached) = replay(&trace, 8, 2.0, Config::qwen3_32b_tp2());
    println!(
        "{} requests over 8 engines in turn at twice the speed: {:.3} of {prompt} prompt tokens cached, {:.1} s",
        trace.len(),
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
    let lines = shared_lines("traces/mooncake_conversation_trace.jsonl.gz")?;
    Some(lines.iter().map(|line| serde_json::from_str(line).expect("a JSON line")).collect())
}
