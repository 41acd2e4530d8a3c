use super::*;

/// Small numbers: 10 ms a step, 1 ms a prompt token, 16 blocks of 4 tokens.
fn config() -> Config {
    Config {
        block_size: 4,
        num_gpu_blocks: 16,
        max_num_seqs: 8,
        max_num_batched_tokens: 16,
        max_model_len: 1000,
        max_loras: 0,
        lora_load: 0.5,
        enable_prefix_caching: true,
        reserve_full_prompt: true,
        step_time: StepTime { fixed: 0.01, per_prefill_token: 0.001, ..ZERO },
    }
}

const ZERO: StepTime = StepTime {
    fixed: 0.0,
    per_prefill_token: 0.0,
    per_decode_request: 0.0,
    per_context_token: 0.0,
    per_attended_pair: 0.0,
};

fn request(id: RequestId, tokens: std::ops::Range<u32>, max_tokens: u32) -> Request {
    let prompt = Prompt::from_tokens(&tokens.collect::<Vec<_>>(), &[], 4, 0);
    Request { id, prompt, max_tokens, adapter: None }
}

fn run(engine: &mut Engine) -> Vec<Event> {
    let mut events = Vec::new();
    engine.advance(1e9, &mut events);
    events
}

fn outcome(events: &[Event], id: RequestId) -> Outcome {
    let found = events.iter().filter(|event| event.id == id).find_map(|event| match &event.kind {
        EventKind::Finished(outcome) => Some(outcome.clone()),
        _ => None,
    });
    found.expect("request finished")
}

fn assert_near(left: f64, right: f64) {
    assert!((left - right).abs() < 1e-9, "{left} is not {right}");
}

#[test]
fn prompt_is_computed_in_chunks_then_one_token_a_step() {
    let mut engine = Engine::new(config());
    engine.submit(0.0, request(1, 0..20, 3)).unwrap();
    let outcome = outcome(&run(&mut engine), 1);
    // Chunks of 16 and 4, then two decode steps.
    assert_near(outcome.first_token, 0.026 + 0.014);
    assert_near(outcome.finished, 0.040 + 2.0 * 0.010);
    assert_eq!((outcome.output_tokens, outcome.cached_tokens), (3, 0));
}

#[test]
fn every_term_of_the_step_time_counts() {
    let work = Work { prefill_tokens: 2, decode_requests: 3, context_tokens: 5, attended_pairs: 7 };
    let step = StepTime {
        fixed: 1.0,
        per_prefill_token: 10.0,
        per_decode_request: 100.0,
        per_context_token: 1000.0,
        per_attended_pair: 10_000.0,
    };
    assert_near(step.seconds(&work), 75_321.0);
}

#[test]
fn attention_costs_pairs_in_prefill_and_context_in_decode() {
    let step_time = StepTime { per_context_token: 1.0, per_attended_pair: 1000.0, ..ZERO };
    let mut engine = Engine::new(Config { step_time, ..config() });
    engine.submit(0.0, request(1, 0..20, 2)).unwrap();
    let outcome = outcome(&run(&mut engine), 1);
    // Causal pairs of a 20-token prompt however it is cut; then one token over a context of 21.
    assert_near(outcome.first_token, 210_000.0);
    assert_near(outcome.finished - outcome.first_token, 21.0);
}

#[test]
fn long_prompt_holds_back_who_comes_behind_it() {
    let mut engine = Engine::new(config());
    engine.submit(0.0, request(1, 0..48, 1)).unwrap();
    engine.submit(0.0, request(2, 100..104, 1)).unwrap();
    let events = run(&mut engine);
    let alone = {
        let mut engine = Engine::new(config());
        engine.submit(0.0, request(2, 100..104, 1)).unwrap();
        outcome(&run(&mut engine), 2).first_token
    };
    assert!(outcome(&events, 2).first_token > 5.0 * alone);
}

#[test]
fn cached_prefix_makes_the_first_token_over_five_times_faster_at_4k() {
    let mut engine = Engine::new(Config::a100_llama3_8b());
    let prompt = |end: u32| {
        let tokens: Vec<u32> = (0..4096).chain(10_000..end).collect();
        Prompt::from_tokens(&tokens, &[], 16, 0)
    };
    let ttft = |engine: &mut Engine, id, end| {
        engine.submit(id as f64 * 100.0, Request { id, prompt: prompt(end), max_tokens: 1, adapter: None }).unwrap();
        let outcome = outcome(&run(engine), id);
        (outcome.first_token - outcome.arrived, outcome.cached_tokens)
    };
    let (cold, none) = ttft(&mut engine, 1, 10_000);
    let (warm, cached) = ttft(&mut engine, 2, 10_016);
    assert_eq!((none, cached), (0, 4096));
    assert!(cold > 5.0 * warm, "cold {cold} s, warm {warm} s");
}

#[test]
fn last_token_is_computed_even_if_all_is_cached() {
    let mut engine = Engine::new(config());
    engine.submit(0.0, request(1, 0..8, 1)).unwrap();
    run(&mut engine);
    engine.submit(1.0, request(2, 0..8, 1)).unwrap();
    assert_eq!(outcome(&run(&mut engine), 2).cached_tokens, 4);
}

#[test]
fn adapters_do_not_share_a_prefix() {
    let tokens: Vec<u32> = (0..8).collect();
    let prompt = |salt| Prompt::from_tokens(&tokens, &[], 4, salt);
    assert_eq!(prompt(1).hashes, prompt(1).hashes);
    assert!(prompt(1).hashes.iter().all(|hash| !prompt(2).hashes.contains(hash)));
}

#[test]
fn trace_block_ids_replay_as_prefixes() {
    let prompt = |ids: &[u64], tokens| Prompt::from_block_ids(ids, 512, tokens, 16, 0);
    let (a, b) = (prompt(&[0, 5, 7], 1100), prompt(&[0, 5, 8], 1500));
    assert_eq!((a.hashes.len(), b.hashes.len()), (68, 93));
    let shared = a.hashes.iter().zip(b.hashes.iter()).take_while(|(a, b)| a == b).count();
    assert_eq!(shared, 64);
    let distinct: std::collections::HashSet<_> = b.hashes.iter().collect();
    assert_eq!(distinct.len(), 93);
}

#[test]
fn known_output_is_found_by_the_next_turn() {
    let mut engine = Engine::new(config());
    let (prompt, answer): (Vec<u32>, Vec<u32>) = ((0..8).collect(), (50..58).collect());
    let prompt = Prompt::from_tokens(&prompt, &answer, 4, 0);
    engine.submit(0.0, Request { id: 1, prompt, max_tokens: 8, adapter: None }).unwrap();
    run(&mut engine);
    let turn: Vec<u32> = (0..8).chain(50..58).chain(90..94).collect();
    let prompt = Prompt::from_tokens(&turn, &[], 4, 0);
    engine.submit(1.0, Request { id: 2, prompt, max_tokens: 1, adapter: None }).unwrap();
    // The KV entry of the last generated token was never computed, so its block is not full.
    assert_eq!(outcome(&run(&mut engine), 2).cached_tokens, 12);
}

#[test]
fn tail_of_a_prompt_is_evicted_before_its_head() {
    let mut engine = Engine::new(config());
    engine.submit(0.0, request(1, 0..40, 1)).unwrap();
    run(&mut engine);
    // 6 blocks were never used, 10 hold the prompt; this takes 12, the last 6 of the prompt's among them.
    engine.submit(1.0, request(2, 100..148, 1)).unwrap();
    run(&mut engine);
    engine.submit(2.0, request(3, 0..40, 1)).unwrap();
    assert_eq!(outcome(&run(&mut engine), 3).cached_tokens, 16);
}

#[test]
fn least_recently_used_prefix_is_evicted_first() {
    let mut engine = Engine::new(config());
    for (at, id, tokens) in [(0.0, 1, 0..24), (1.0, 2, 100..124), (2.0, 3, 0..24), (3.0, 4, 200..240)] {
        engine.submit(at, request(id, tokens, 1)).unwrap();
        run(&mut engine);
    }
    engine.submit(4.0, request(5, 0..24, 1)).unwrap();
    engine.submit(4.0, request(6, 100..124, 1)).unwrap();
    let events = run(&mut engine);
    assert_eq!((outcome(&events, 5).cached_tokens, outcome(&events, 6).cached_tokens), (20, 0));
}

#[test]
fn gauges_tell_of_an_arrival_only_at_a_later_step_end() {
    let mut engine = Engine::new(Config { max_num_seqs: 1, ..config() });
    let mut events = Vec::new();
    engine.submit(0.0, request(1, 0..32, 1)).unwrap();
    assert_near(engine.next_step_end().unwrap(), 0.026);
    engine.submit(0.001, request(2, 100..104, 1)).unwrap();
    engine.advance(0.025, &mut events);
    assert_eq!((engine.stats().running, engine.stats().waiting, engine.in_flight()), (0, 0, 2));
    // The step during which it came knows nothing of it; the next one does.
    engine.advance(0.027, &mut events);
    assert_eq!((engine.stats().running, engine.stats().waiting), (1, 0));
    engine.advance(0.053, &mut events);
    assert_eq!((engine.stats().running, engine.stats().waiting), (0, 1));
}

#[test]
fn cache_usage_is_zero_when_idle_although_the_cache_is_full() {
    let mut engine = Engine::new(config());
    engine.submit(0.0, request(1, 0..63, 1)).unwrap();
    let mut events = Vec::new();
    engine.advance(0.03, &mut events);
    assert_near(engine.stats().kv_usage, 4.0 / 16.0);
    run(&mut engine);
    assert_near(engine.stats().kv_usage, 0.0);
}

#[test]
fn admission_waits_for_blocks() {
    let mut engine = Engine::new(config());
    engine.submit(0.0, request(1, 0..40, 4)).unwrap();
    engine.submit(0.0, request(2, 100..140, 1)).unwrap();
    let events = run(&mut engine);
    assert_near(outcome(&events, 2).scheduled, outcome(&events, 1).finished);
    assert_eq!(engine.stats().counters.preemptions, 0);
}

#[test]
fn newest_is_preempted_counted_and_still_finishes() {
    let mut engine = Engine::new(config());
    engine.submit(0.0, request(1, 0..28, 20)).unwrap();
    engine.submit(0.0, request(2, 100..128, 20)).unwrap();
    let events = run(&mut engine);
    assert_eq!(engine.stats().counters.preemptions, 1);
    assert_eq!(events.iter().filter(|event| event.kind == EventKind::Preempted).count(), 1);
    let (first, second) = (outcome(&events, 1), outcome(&events, 2));
    assert_eq!((first.preemptions, second.preemptions), (0, 1));
    assert_eq!((first.output_tokens, second.output_tokens), (20, 20));
    assert!(second.finished > first.finished);
    assert_near(engine.stats().kv_usage, 0.0);
}

#[test]
fn abort_frees_blocks_in_any_state() {
    let mut engine = Engine::new(Config { max_num_seqs: 1, ..config() });
    let mut events = Vec::new();
    engine.submit(0.0, request(1, 0..40, 50)).unwrap();
    engine.submit(0.0, request(2, 100..140, 1)).unwrap();
    engine.advance(0.1, &mut events);
    engine.submit(0.1, request(3, 200..240, 1)).unwrap();
    assert!(engine.stats().kv_blocks_used >= 10);
    assert!(engine.abort(1) && engine.abort(2) && engine.abort(3));
    assert!(!engine.abort(1));
    events.clear();
    engine.advance(10.0, &mut events);
    assert_eq!(events, []);
    assert_eq!((engine.stats().kv_blocks_used, engine.stats().running, engine.stats().waiting), (0, 0, 0));
    assert_eq!(engine.next_step_end(), None);
}

#[test]
fn adapter_waits_for_a_slot_and_another_request_overtakes() {
    let mut engine = Engine::new(Config { max_loras: 1, ..config() });
    for (id, adapter) in [(1, Some(7)), (2, Some(8)), (3, None)] {
        let tokens = id as u32 * 100..id as u32 * 100 + 4;
        engine.submit(0.0, Request { adapter, ..request(id, tokens, 3) }).unwrap();
    }
    let events = run(&mut engine);
    assert!(outcome(&events, 2).scheduled >= outcome(&events, 1).finished);
    assert_near(outcome(&events, 3).scheduled, 0.0);
    assert_eq!(engine.stats().counters.lora_loads, 2);
    // Loading is part of the step.
    assert!(outcome(&events, 1).first_token > 0.5);
}

#[test]
fn adapters_with_requests_are_listed_in_first_seen_order() {
    let mut engine = Engine::new(Config { max_loras: 1, ..config() });
    for (id, adapter) in [(1, 8), (2, 7)] {
        let tokens = id as u32 * 100..id as u32 * 100 + 4;
        engine.submit(0.0, Request { adapter: Some(adapter), ..request(id, tokens, 3) }).unwrap();
    }
    let mut events = Vec::new();
    engine.advance(0.52, &mut events);
    assert_eq!(engine.stats().adapters, [8, 7]);
    run(&mut engine);
    assert!(engine.stats().adapters.is_empty());
}

#[test]
fn impossible_requests_are_refused() {
    let mut engine = Engine::new(config());
    assert_eq!(engine.submit(0.0, request(1, 0..0, 1)), Err(Rejected::Empty));
    assert_eq!(engine.submit(0.0, request(1, 0..64, 1)), Err(Rejected::TooLong));
    let lora = Request { adapter: Some(1), ..request(1, 0..4, 1) };
    assert_eq!(engine.submit(0.0, lora), Err(Rejected::LoraDisabled));
    // Cut to the context: 64 tokens in the pool.
    engine.submit(0.0, request(1, 0..60, 1000)).unwrap();
    assert_eq!(outcome(&run(&mut engine), 1).output_tokens, 4);
}

#[test]
fn reset_forgets_the_cache_and_the_counters() {
    let mut engine = Engine::new(config());
    engine.submit(0.0, request(1, 0..40, 1)).unwrap();
    run(&mut engine);
    engine.reset();
    assert_eq!(engine.stats().counters, Counters::default());
    engine.submit(1.0, request(2, 0..40, 1)).unwrap();
    assert_eq!(outcome(&run(&mut engine), 2).cached_tokens, 0);
}
