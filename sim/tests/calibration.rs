//! The engine against a published vLLM 0.19 run: Llama-3.1-8B on an RTX 4090, 300 requests at 10 per second, the cache
//! full for three minutes with up to 234 requests waiting (casys-kaist/LLMServingSim, `bench/examples`).

// Lets the lints see that all of it is tests.
#![cfg(test)]

use std::path::PathBuf;

use serde_json::Value;
use sim::engine::{Config, Engine, Prompt, Request, StepTime};

/// One second of the run.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    running: f64,
    waiting: f64,
    kv_percent: f64,
}

struct Run {
    /// Arrival in seconds since the run's start, prompt tokens, output tokens.
    requests: Vec<(f64, u32, u32)>,
    samples: Vec<Sample>,
}

#[test]
fn running_waiting_and_cache_use_follow_a_real_saturated_server() {
    let Some(real) = load() else { return };
    assert_follows("profile rtx4090-llama3-8b", Config::rtx4090_llama3_8b(), &real);
}

/// Nothing fitted to the curves: decode steps as the run's log has them, prefill from its peak throughput.
#[test]
fn linear_step_time_follows_it_too() {
    let Some(real) = load() else { return };
    let step_time = StepTime {
        fixed: 20.1e-3,
        per_prefill_token: 75e-6,
        per_decode_request: 0.205e-3,
        per_context_token: 0.0,
        per_attended_pair: 0.0,
    };
    assert_follows("linear", Config { step_time, ..Config::rtx4090_llama3_8b() }, &real);
}

fn assert_follows(constants: &str, config: Config, real: &Run) {
    let simulated = replay(config, real);
    for (name, of) in CURVES {
        let error = relative_error(of, &simulated, &real.samples);
        println!("{constants}: {name} off by {:.1} % of the real mean", error * 100.0);
        assert!(error < 0.20, "{name} is off by {:.1} %", error * 100.0);
    }
}

type Curve = fn(&Sample) -> f64;

const CURVES: [(&str, Curve); 3] = [
    ("running", |sample| sample.running),
    ("waiting", |sample| sample.waiting),
    ("KV use", |sample| sample.kv_percent),
];

fn relative_error(of: Curve, simulated: &[Sample], real: &[Sample]) -> f64 {
    let difference: f64 = simulated.iter().zip(real).map(|(s, r)| (of(s) - of(r)).abs()).sum();
    difference / real.iter().map(of).sum::<f64>()
}

/// The run's requests in virtual time, sampled at the same seconds. No prompt shares a prefix with another: their text
/// is not published.
fn replay(config: Config, run: &Run) -> Vec<Sample> {
    let mut engine = Engine::new(config);
    let mut requests = (0..).zip(&run.requests).peekable();
    let mut events = Vec::new();
    let seconds = (1..=run.samples.len()).map(|second| second as f64);
    let sample = |second: f64| {
        while let Some((id, &(at, prompt, output))) = requests.next_if(|(_, request)| request.0 <= second) {
            engine.advance(at, &mut events);
            let request = Request { id, prompt: Prompt::unshared(prompt), max_tokens: output, adapter: None };
            engine.submit(at, request).expect("fits");
        }
        engine.advance(second, &mut events);
        events.clear();
        let stats = engine.stats();
        Sample { running: stats.running as f64, waiting: stats.waiting as f64, kv_percent: stats.kv_usage * 100.0 }
    };
    seconds.map(sample).collect()
}

fn load() -> Option<Run> {
    let shared = std::env::var_os("ENDPOINT_PICKER_SHARED")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared"), PathBuf::from);
    let read = |file: &str| std::fs::read_to_string(shared.join("data/calib").join(file)).ok();
    let files = (read("RTX4090_Llama-3.1-8B__requests.jsonl"), read("RTX4090_Llama-3.1-8B__timeseries.csv"));
    let (Some(requests), Some(series)) = files else {
        println!("skipped: no calibration data in the shared data directory {}", shared.display());
        return None;
    };
    // The series counts from the run's start, 2026-08-20T23:19:39.992Z.
    const START: f64 = 1_787_267_979.992;
    let requests = requests.lines().map(|line| {
        let request: Value = serde_json::from_str(line).expect("a JSON line");
        let tokens = |key: &str| request[key].as_u64().and_then(|n| u32::try_from(n).ok()).expect("a token count");
        (request["arrival_time"].as_f64().expect("a time") - START, tokens("input_toks"), tokens("output_toks"))
    });
    let samples = series.lines().skip(1).map(|line| {
        let fields: Vec<f64> = line.split(',').map(|field| field.parse().expect("a number")).collect();
        Sample { running: fields[3], waiting: fields[4], kv_percent: fields[5] }
    });
    let mut requests: Vec<_> = requests.collect();
    requests.sort_by(|a, b| a.0.total_cmp(&b.0));
    Some(Run { requests, samples: samples.collect() })
}
