use super::*;
use crate::engine;
use crate::replay::report::Summary;
use crate::replay::trace::SharedPrefix;
use crate::replay::world::World;

/// Tokens in the cache of each of four engines, which together hold half of the prompts.
const REAL: u32 = 25_000;

/// The mean of two replays. `tells_capacity`: engines tell `capacity`, right or wrong; else it is what is assumed.
fn replay(engine: engine::Config, capacity: u32, tells_capacity: bool, tells_cached: Cached) -> Summary {
    let rate = if engine.enable_prefix_caching { 50.0 } else { 20.0 };
    let prompts =
        SharedPrefix { groups: 60, prompts: 5, system: 1500, question: 300, output: 10, rate, requests: 2500 };
    let engines = vec![engine; 4];
    let config = json!({
        "profile": { "scorers": [{ "type": "expected-cost-scorer" }], "picker": { "type": "max-score-picker" } },
        "prefix": { "capacity_blocks": capacity / 64 },
    });
    let seeds = (1..=2).map(|seed| {
        let config = config.as_object().cloned().unwrap_or_default();
        let fleet =
            Fleet { config, capacities: vec![capacity; 4], tells_capacity, tells_cached, ..Fleet::of(&engines, seed) };
        let workers = workers(configured(&fleet.config, &fleet).unwrap(), &fleet);
        let mut routers: Vec<_> = workers.into_iter().map(|worker| Box::new(worker) as Box<dyn Router>).collect();
        let served = World::new(engines.clone(), seed).replay(&prompts.generate(seed), &mut routers);
        Summary::of(engines.len(), &served)
    });
    let mean = Summary::mean(&seeds.collect::<Vec<_>>());
    println!(
        "capacity {capacity} {}, cached {tells_cached:?}: TTFT {:.3} s, hits {:.3}",
        if tells_capacity { "told" } else { "assumed" },
        mean.ttft_mean,
        mean.hit_rate
    );
    mean
}

fn engine() -> engine::Config {
    engine::Config::qwen3_32b_tp2().with_kv_tokens(REAL)
}

/// `[without, with]` answers that tell what was cached.
fn corrected(capacity: u32, tells_capacity: bool) -> [Summary; 2] {
    [Cached::Nothing, Cached::Truth].map(|cached| replay(engine(), capacity, tells_capacity, cached))
}

fn no_worse(with: &Summary, without: &Summary) {
    assert!(with.ttft_mean < 1.1 * without.ttft_mean, "{} {}", with.ttft_mean, without.ttft_mean);
    assert!(with.hit_rate > without.hit_rate - 0.01, "{} {}", with.hit_rate, without.hit_rate);
}

#[test]
fn a_capacity_that_is_right_is_left_alone() {
    for told in [true, false] {
        let [without, with] = corrected(REAL, told);
        no_worse(&with, &without);
    }
}

#[test]
fn a_capacity_told_or_assumed_four_times_too_large_is_corrected() {
    for told in [true, false] {
        let [without, with] = corrected(4 * REAL, told);
        let right = replay(engine(), REAL, told, Cached::Nothing);
        no_worse(&with, &without);
        // With the time it takes to learn.
        assert!(with.ttft_mean < without.ttft_mean, "{} {}", with.ttft_mean, without.ttft_mean);
        assert!(with.ttft_mean < 1.3 * right.ttft_mean, "{} {}", with.ttft_mean, right.ttft_mean);
        assert!(with.hit_rate > right.hit_rate - 0.02, "{} {}", with.hit_rate, right.hit_rate);
    }
}

#[test]
fn a_capacity_assumed_four_times_too_small_is_corrected() {
    let [without, with] = corrected(REAL / 4, false);
    let right = replay(engine(), REAL, false, Cached::Nothing);
    assert!(with.ttft_mean < 0.75 * without.ttft_mean, "{} {}", with.ttft_mean, without.ttft_mean);
    assert!(with.hit_rate > right.hit_rate - 0.05, "{} {}", with.hit_rate, right.hit_rate);
}

#[test]
fn a_capacity_told_four_times_too_small_is_the_servers_word() {
    let [without, with] = corrected(REAL / 4, true);
    no_worse(&with, &without);
}

#[test]
fn engines_that_cache_nothing_are_not_taken_for_the_better_of_them() {
    let engine = engine::Config { enable_prefix_caching: false, ..engine() };
    let [without, with] = [Cached::Nothing, Cached::Truth].map(|cached| replay(engine.clone(), REAL, true, cached));
    assert!(with.ttft_mean < 0.9 * without.ttft_mean, "{} {}", with.ttft_mean, without.ttft_mean);
    let always = replay(engine, REAL, true, Cached::Always(0));
    assert_eq!(always, with);
}

#[test]
fn more_cached_tokens_than_the_prompt_has_are_not_believed() {
    let [untold, nonsense] =
        [Cached::Nothing, Cached::Always(u32::MAX)].map(|cached| replay(engine(), 4 * REAL, false, cached));
    assert_eq!(untold, nonsense);
}
