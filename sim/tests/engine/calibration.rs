//! The engine against published vLLM 0.19 runs of Llama-3.1-8B, 300 requests at 10 per second each
//! (casys-kaist/LLMServingSim, `bench/examples`). On the RTX 4090 the cache is full for three minutes and up to 234
//! requests wait for blocks; on the RTX PRO 6000 they wait for one of 128 places in the batch.

use serde_json::Value;
use sim::engine::{Config, Engine, Prompt, Request, StepTime};

use crate::shared_lines;

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
    let Some(real) = load(RTX4090) else { return };
    assert_follows("profile rtx4090-llama3-8b", Config::rtx4090_llama3_8b(), &real, &CURVES);
}

/// Nothing fitted to the curves: decode steps as the run's log has them, prefill from its peak throughput.
#[test]
fn linear_step_time_follows_it_too() {
    let Some(real) = load(RTX4090) else { return };
    let step_time = StepTime {
        fixed: 20.1e-3,
        per_prefill_token: 75e-6,
        per_decode_request: 0.205e-3,
        per_context_token: 0.0,
        per_attended_pair: 0.0,
    };
    assert_follows("linear", Config { step_time, ..Config::rtx4090_llama3_8b() }, &real, &CURVES);
}

#[test]
fn batch_and_queue_follow_a_server_whose_batch_is_full() {
    let Some(real) = load(RTX_PRO_6000) else { return };
    // That run did not record its cache use.
    assert_follows("profile rtxpro6000-llama3-8b", Config::rtx_pro_6000_llama3_8b(), &real, &CURVES[..2]);
}

fn assert_follows(constants: &str, config: Config, real: &Run, curves: &[(&str, Curve)]) {
    let simulated = replay(config, real);
    for (name, of) in curves {
        let error = relative_error(*of, &simulated, &real.samples);
        println!("{constants}: {name} off by {:.1} % of the real mean", error * 100.0);
        assert!(error < 0.20, "{name} is off by {:.1} %", error * 100.0);
    }
}

/// Name of a run's files and when it started, in Unix seconds: its series counts from there.
type Source = (&'static str, f64);

const RTX4090: Source = ("RTX4090_Llama-3.1-8B", 1_787_267_979.992);
const RTX_PRO_6000: Source = ("RTXPRO6000_Llama-3.1-8B", 1_777_142_838.273);

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

fn load((name, start): Source) -> Option<Run> {
    let requests = shared_lines(&format!("calib/{name}__requests.jsonl"))?;
    let series = shared_lines(&format!("calib/{name}__timeseries.csv"))?;
    let requests = requests.iter().map(|line| {
        let request: Value = serde_json::from_str(line).expect("a JSON line");
        let tokens = |key: &str| request[key].as_u64().and_then(|n| u32::try_from(n).ok()).expect("a token count");
        (request["arrival_time"].as_f64().expect("a time") - start, tokens("input_toks"), tokens("output_toks"))
    });
    let samples = series.iter().skip(1).map(|line| {
        let fields: Vec<f64> = line.split(',').map(|field| field.parse().expect("a number")).collect();
        Sample { running: fields[3], waiting: fields[4], kv_percent: fields[5] }
    });
    let mut requests: Vec<_> = requests.collect();
    requests.sort_by(|a, b| a.0.total_cmp(&b.0));
    Some(Run { requests, samples: samples.collect() })
}
