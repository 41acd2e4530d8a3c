use serde_json::{Map, json};

use super::*;
use crate::engine::Config;
use crate::replay::report::Summary;
use crate::replay::rules::{Fleet, RuleKind};
use crate::replay::trace::{Chat, Segment, SharedPrefix};

fn engines(count: usize, kv_tokens: u32) -> Vec<Config> {
    vec![Config::qwen3_32b_tp2().with_kv_tokens(kv_tokens); count]
}

fn call(start: Start, id: u64, tokens: u32, output: u32) -> Call {
    Call::new(start, &[Segment { id, tokens }], 1, output, None)
}

/// Many customers with long system prompts, on caches that hold only a few of these each.
fn busy() -> Workload {
    let generator = SharedPrefix {
        groups: 24,
        prompts: 2,
        question: 200,
        output: 40,
        rate: 16.0,
        requests: 600,
        ..SharedPrefix::default()
    };
    generator.generate(1)
}

fn replay(workload: &Workload, world: &World, rule: RuleKind, workers: usize, shared: bool) -> Vec<Served> {
    let config = Map::from_iter([("profile".into(), json!("expected-cost"))]);
    let fleet = Fleet { workers, shared, config, ..Fleet::of(&world.engines, world.seed) };
    world.replay(workload, &mut rule.routers(&fleet).unwrap())
}

fn summary(workload: &Workload, world: &World, rule: RuleKind, workers: usize, shared: bool) -> Summary {
    Summary::of(world.engines.len(), &replay(workload, world, rule, workers, shared))
}

#[test]
fn an_idle_fleet_costs_a_call_the_network_and_its_own_steps() {
    let world = World::new(engines(2, 100_000), 1);
    let workload = Workload { calls: vec![call(Start::At(5.0), 1, 1000, 3)] };
    let [served] = &replay(&workload, &world, RuleKind::LeastRequest, 1, true)[..] else { panic!() };

    let step_time = world.engines[0].step_time;
    let prefill =
        step_time.seconds(&engine::Work { prefill_tokens: 1000, attended_pairs: 500_500, ..Default::default() });
    assert!((served.first_token - (5.0 + 2.0 * world.network + prefill)).abs() < 1e-9, "{served:?}");
    assert_eq!(served.arrived, 5.0);
    assert_eq!(served.outcome.as_ref().map(|outcome| outcome.output_tokens), Some(3));
}

#[test]
fn calls_that_arrive_together_are_batched_together() {
    let world = World::new(engines(1, 100_000), 1);
    let workload = Workload { calls: (0..4).map(|id| call(Start::At(0.0), id, 500, 1)).collect() };
    let served = replay(&workload, &world, RuleKind::RoundRobin, 1, true);
    assert!(served.iter().all(|call| call.first_token == served[0].first_token), "one step for all: {served:?}");
}

#[test]
fn a_call_of_a_closed_loop_waits_for_the_one_before() {
    let world = World::new(engines(2, 100_000), 1);
    let after = Start::After { call: 0, pause: 2.0 };
    let workload = Workload { calls: vec![call(Start::At(1.0), 1, 500, 5), call(after, 2, 500, 5)] };
    let served = replay(&workload, &world, RuleKind::RoundRobin, 1, true);
    assert_eq!(served[1].arrived, served[0].finished + 2.0);
}

#[test]
fn what_no_engine_can_hold_is_rejected_and_the_replay_goes_on() {
    let world = World::new(engines(1, 1600), 1);
    let after = Start::After { call: 0, pause: 0.0 };
    let workload = Workload { calls: vec![call(Start::At(0.0), 1, 5000, 5), call(after, 2, 500, 5)] };
    let served = replay(&workload, &world, RuleKind::Reference, 1, true);
    assert_eq!(served.iter().map(|served| served.outcome.is_some()).collect::<Vec<_>>(), [false, true]);
}

#[test]
fn a_seed_gives_the_same_replay_whatever_the_rule() {
    let workload = Chat { conversations: 60, ..Chat::default() }.generate(3);
    let world = World::new(engines(3, 60_000), 3);
    for (rule, name) in RuleKind::ALL {
        let [first, second] = [0, 1].map(|_| replay(&workload, &world, rule, 2, false));
        assert_eq!(first, second, "{name}");
        assert_eq!(first.len(), workload.calls.len(), "{name}");
    }
}

#[test]
fn stale_gauges_bring_a_herd_to_a_rule_that_relies_on_them() {
    let calls = (0..400).map(|id| call(Start::At(id as f64 / 12.0), id, 4000, 20));
    let (workload, fresh) =
        (Workload { calls: calls.collect() }, World { scrape: 0.05, ..World::new(engines(4, 60_000), 1) });
    let stale = World { scrape: 5.0, ..fresh.clone() };
    let ttft = |world, rule| summary(&workload, world, rule, 1, true).ttft_mean;
    let blend = RuleKind::EppDefault;
    assert!(ttft(&stale, blend) > 2.0 * ttft(&fresh, blend), "{} {}", ttft(&stale, blend), ttft(&fresh, blend));
    let ours = RuleKind::Picker;
    assert!(ttft(&stale, ours) < 1.05 * ttft(&fresh, ours), "{} {}", ttft(&stale, ours), ttft(&fresh, ours));
}

#[test]
fn workers_that_do_not_share_what_they_know_miss_caches_they_could_have_hit() {
    let (workload, world) = (busy(), World::new(engines(4, 60_000), 1));
    let [shared, private] = [true, false].map(|shared| summary(&workload, &world, RuleKind::Sticky, 8, shared));
    assert!(private.ttft_mean > 3.0 * shared.ttft_mean, "{} {}", private.ttft_mean, shared.ttft_mean);
    assert!(private.hit_rate < shared.hit_rate - 0.1, "{} {}", private.hit_rate, shared.hit_rate);
}

#[test]
fn workers_of_the_picker_that_share_a_store_are_like_one() {
    let (workload, world) = (busy(), World::new(engines(4, 60_000), 1));
    let [one, many] = [1, 8].map(|workers| summary(&workload, &world, RuleKind::Picker, workers, true));
    assert!(many.ttft_mean < 1.1 * one.ttft_mean, "{} {}", many.ttft_mean, one.ttft_mean);
    assert!(many.hit_rate > one.hit_rate - 0.03, "{} {}", many.hit_rate, one.hit_rate);
}

#[test]
fn the_picker_and_its_cost_written_a_second_time_agree() {
    let (workload, world) = (busy(), World::new(engines(4, 60_000), 1));
    let [picker, reference] =
        [RuleKind::Picker, RuleKind::Reference].map(|rule| summary(&workload, &world, rule, 1, true));
    assert!((picker.e2e_mean / reference.e2e_mean - 1.0).abs() < 0.1, "{} {}", picker.e2e_mean, reference.e2e_mean);
}

#[test]
fn slower_engines_are_found_out_by_the_rule_that_learns() {
    let workload = Chat { conversations: 300, rate: 3.0, ..Chat::default() }.generate(1);
    let mut world = World::new(engines(4, 100_000), 1);
    world.engines[0].step_time = world.engines[0].step_time.at_speed(0.3);
    let share = |rule| {
        let served = replay(&workload, &world, rule, 1, true);
        served.iter().filter(|served| served.engine == 0).count() as f64 / served.len() as f64
    };
    assert!(share(RuleKind::Picker) < 0.8 * share(RuleKind::EppDefault));
}
