use super::table::seconds;
use super::*;
use crate::engine;
use crate::replay::world::Served;

/// A call that arrived at `arrived`, with 11 output tokens, the last ten of them in one second.
fn served(call: usize, arrived: f64, ttft: f64) -> Served {
    let (first_token, finished) = (arrived + ttft, arrived + ttft + 1.0);
    let outcome = engine::Outcome {
        prompt_tokens: 100,
        cached_tokens: 60,
        output_tokens: 11,
        preemptions: 1,
        arrived,
        scheduled: arrived,
        first_token,
        finished,
    };
    Served { call, engine: call % 2, arrived, first_token, finished, outcome: Some(outcome) }
}

#[test]
fn the_first_tenth_to_arrive_does_not_count() {
    let calls: Vec<_> =
        (0..20).rev().map(|call| served(call, call as f64, if call < 2 { 50.0 } else { 0.5 })).collect();
    let summary = Summary::of(2, &calls);
    assert_eq!((summary.calls, summary.ttft_mean, summary.ttft_p99), (18.0, 0.5, 0.5));
}

#[test]
fn quantiles_are_calls_that_happened() {
    let calls: Vec<_> = (0..11).map(|call| served(call, 0.0, call as f64)).collect();
    let summary = Summary::of(2, &calls);
    assert_eq!((summary.ttft_p50, summary.ttft_p90, summary.ttft_p99), (5.0, 9.0, 10.0), "of 1 to 10");
    assert_eq!((summary.ttft_mean, summary.e2e_mean), (5.5, 6.5));
    assert!((summary.tpot_mean - 0.1).abs() < 1e-9, "{}", summary.tpot_mean);
}

#[test]
fn goodput_wants_both_the_first_token_and_the_others_in_time() {
    let mut calls: Vec<_> = (0..4).map(|call| served(call, 0.0, 1.0)).collect();
    assert_eq!(Summary::of(2, &calls).goodput, 0.0, "100 ms a token is too slow");
    calls.iter_mut().for_each(|call| call.finished = call.first_token + 0.5);
    calls[0].first_token = 2.5;
    calls[0].finished = 3.0;
    calls[1].outcome = None;
    let summary = Summary::of(2, &calls);
    assert_eq!((summary.goodput, summary.rejected, summary.calls), (0.5, 1.0, 3.0));
}

#[test]
fn load_is_compared_between_engines() {
    let mut calls: Vec<_> = (0..8).map(|call| served(call, 0.0, 1.0)).collect();
    let even = Summary::of(2, &calls);
    assert_eq!((even.imbalance, even.busiest, even.hit_rate, even.preemptions), (0.0, 1.0, 0.6, 8.0));
    calls.iter_mut().for_each(|call| call.engine = 0);
    let uneven = Summary::of(2, &calls);
    assert_eq!((uneven.imbalance, uneven.busiest), (1.0, 2.0));
}

#[test]
fn a_replay_without_calls_has_no_figure_that_is_not_a_number() {
    let json = serde_json::to_value(Summary::of(0, &[])).unwrap();
    assert!(json.as_object().unwrap().values().all(|value| value.as_f64().is_some()), "{json}");
}

#[test]
fn tables_are_markdown_that_lines_up() {
    let rows = [["rule", "TTFT"], ["round-robin", "1.2"]].map(|row| row.map(String::from).to_vec());
    let expected = "| rule        | TTFT |\n|:------------|-----:|\n| round-robin |  1.2 |\n";
    assert_eq!(markdown(&rows, 1), expected);
    assert_eq!([0.8361, 9.4, 94.02].map(seconds), ["0.836", "9.40", "94.0"]);
}
