use rand_pcg::rand_core::SeedableRng;

use super::*;
use crate::replay::trace::{Segment, Start};

/// A prompt of 6,400 tokens, a hundred blocks.
fn prompt() -> Call {
    Call::new(Start::At(0.0), &[Segment { id: 1, tokens: 6400 }], 1, 10, None)
}

/// An endpoint that holds this percentage of the prompt.
fn holding(percent: u32) -> Endpoint {
    Endpoint { capacity: 700_000, cached: 64 * percent, matched: f64::from(percent) / 100.0, ..Endpoint::default() }
}

fn fleet() -> Fleet {
    let engine = crate::engine::Config::qwen3_32b_tp2().with_kv_tokens(700_000);
    Fleet::of(&vec![engine; 2], 1)
}

fn choose(rule: &mut impl Rule, endpoints: &[Endpoint]) -> usize {
    rule.choose(&prompt(), &View { now: 0.0, endpoints }, &mut Pcg64::seed_from_u64(1))
}

#[test]
fn names_are_read_as_they_are_written() {
    for (rule, name) in RuleKind::ALL {
        assert_eq!(name.parse(), Ok(rule));
        assert_eq!(rule.to_string(), name);
    }
    assert!("best".parse::<RuleKind>().unwrap_err().contains("sticky-until-saturated"));
}

#[test]
fn round_robin_takes_turns() {
    let mut rule = round_robin::RoundRobin::starting_at(1);
    let endpoints = [Endpoint::default(); 3];
    assert_eq!([0; 4].map(|_| choose(&mut rule, &endpoints)), [1, 2, 0, 1]);
}

#[test]
fn least_request_counts_what_is_in_flight() {
    let endpoints = [3, 1, 2].map(|requests| Endpoint { requests, ..holding(100) });
    assert_eq!(choose(&mut least_request::LeastRequest, &endpoints), 1);
}

#[test]
fn equals_are_chosen_at_random() {
    let mut random = Pcg64::seed_from_u64(1);
    let endpoints = [Endpoint::default(); 4];
    let mut chosen = [0; 4];
    for _ in 0..4000 {
        chosen[cheapest(endpoints.iter().enumerate(), &mut random, |_| 1.0).unwrap()] += 1;
    }
    assert!(chosen.iter().all(|count| (900..1100).contains(count)), "{chosen:?}");
}

#[test]
fn the_blend_is_two_queue_two_cache_three_prefix() {
    let endpoint = |waiting, kv_usage, percent| Endpoint {
        gauges: Gauges { waiting, kv_usage, ..Gauges::default() },
        ..holding(percent)
    };
    // 2*0 + 2*0.8 + 3*1 = 4.6 against 2*1 + 2*0.9 + 3*0.2 = 4.4.
    let rule = &mut epp::Blend::default();
    assert_eq!(choose(rule, &[endpoint(10, 0.2, 100), endpoint(0, 0.1, 20)]), 0);
    // 2*0 + 2*0.6 + 3*1 = 4.2 now.
    assert_eq!(choose(rule, &[endpoint(10, 0.4, 100), endpoint(0, 0.1, 20)]), 1);
    // Equal queues give everyone a 1: 2 + 2*0 + 3*0.5 against 2 + 2*1 + 0.
    assert_eq!(choose(rule, &[endpoint(5, 1.0, 50), endpoint(5, 0.0, 0)]), 1);
}

#[test]
fn sticky_sticks_until_the_wait_exceeds_the_penalty() {
    let pending = |percent, seconds| Endpoint { pending: (15_928.0 * seconds) as u64, ..holding(percent) };
    let rule = &mut sticky::Sticky::default();
    assert_eq!(choose(rule, &[pending(90, 5.0), pending(85, 3.0), pending(10, 0.0)]), 1, "fewest tokens of those");
    assert_eq!(choose(rule, &[pending(90, 18.5), pending(85, 18.2), pending(10, 0.0)]), 2, "saturated");
    assert_eq!(choose(rule, &[pending(79, 0.5), pending(10, 0.0)]), 1, "79 % is not sticky");
}

#[test]
fn cache_aware_follows_the_match_unless_load_is_uneven() {
    let endpoint = |percent, requests| Endpoint { requests, ..holding(percent) };
    let rule = &mut sglang::CacheAware::new(2);
    assert_eq!(choose(rule, &[endpoint(40, 60), endpoint(0, 0)]), 0);
    assert_eq!(choose(rule, &[endpoint(40, 65), endpoint(0, 0)]), 1, "more than 64 apart");
    assert_eq!(choose(rule, &[endpoint(40, 265), endpoint(0, 200)]), 0, "not 1.5 times as many");
    // So far 3840 tokens were put into the first tree and 6400 into the second, and the first gets 3840 more.
    assert_eq!(choose(rule, &[endpoint(30, 0), endpoint(30, 0)]), 1, "the smaller tree");
}

#[test]
fn aibrix_skips_holders_that_are_far_above_the_mean() {
    let endpoint = |percent, requests| Endpoint { requests, ..holding(percent) };
    let rule = &mut aibrix::PrefixCache::default();
    assert_eq!(choose(rule, &[endpoint(80, 5), endpoint(50, 3), endpoint(0, 3)]), 1, "5 > 3.67 + 0.94");
    assert_eq!(choose(rule, &[endpoint(80, 4), endpoint(50, 3), endpoint(0, 5)]), 0);
    assert_eq!(choose(rule, &[endpoint(80, 12), endpoint(0, 3), endpoint(0, 4)]), 1, "more than 8 apart");
}

#[test]
fn preble_exploits_long_matches_and_spreads_the_rest() {
    let rule = &mut preble::Preble::new(2);
    assert_eq!(choose(rule, &[holding(40), holding(0)]), 0, "less to compute there");
    assert_eq!(choose(rule, &[holding(0), holding(0)]), 1, "3840 tokens were sent to the other");
    assert_eq!(choose(rule, &[holding(40), holding(60)]), 1, "more than half, in spite of its load");
}

#[test]
fn dynamo_adds_scaled_prefill_and_the_blocks_of_the_batch() {
    let call = prompt();
    let other = Call::new(Start::At(0.0), &[Segment { id: 2, tokens: 12_800 }], 1, 10, None);
    let cost_of_the_cached_one = |scale| {
        let mut rule = dynamo::KvRouter::new(scale, 2);
        // The endpoint that has the prompt cached decodes 200 blocks for somebody else.
        rule.placed(1, &other, 0);
        let chosen = choose(&mut rule, &[holding(50), holding(0)]);
        rule.finished(1, None, 0.0);
        assert_eq!(choose(&mut rule, &[holding(50), holding(0)]), 0, "nothing is in flight any more");
        chosen
    };
    // 50 + 200 + 100 against 100 + 100.
    assert_eq!(cost_of_the_cached_one(1.0), 1);
    // 16 * 50 + 300 against 16 * 100 + 100.
    assert_eq!(cost_of_the_cached_one(16.0), 0);
    assert_eq!(call.hashes().len(), 100);
}

#[test]
fn lmetric_multiplies_prefill_and_batch() {
    let endpoint = |percent, pending, requests| Endpoint { pending, requests, ..holding(percent) };
    // 3200 * 2 against 6400 * 1.
    assert_eq!(choose(&mut lmetric::Lmetric, &[endpoint(50, 100, 1), endpoint(0, 0, 0)]), 1);
    assert_eq!(choose(&mut lmetric::Lmetric, &[endpoint(51, 0, 1), endpoint(0, 0, 0)]), 0);
}

#[test]
fn wait_and_prefill_takes_the_soonest_first_token() {
    let fleet = fleet();
    let mut rule = wait_and_prefill::rule(&fleet);
    // 0.16 s where half of it is cached and 0.30 s elsewhere; in the end 0.48 s are waited for there.
    let chosen = [0, 1, 2, 3].map(|id| {
        let chosen = choose(&mut rule, &[holding(50), holding(0)]);
        rule.placed(id, &prompt(), chosen);
        chosen
    });
    assert_eq!(chosen, [0, 1, 0, 0]);
    rule.first_token(1, 0.0);
    assert_eq!(choose(&mut rule, &[holding(50), holding(0)]), 1, "nobody waits there any more");
}

#[test]
fn the_reference_spares_those_that_are_decoding() {
    let fleet = fleet();
    let mut rule = reference::Reference::new(reference::Weights::default(), &fleet);
    for id in 0..40 {
        choose(&mut rule, &[holding(50), holding(50)]);
        rule.placed(id, &prompt(), 0);
        rule.first_token(id, 0.0);
    }
    let busy = Endpoint { requests: 40, decoding: 40, ..holding(90) };
    assert_eq!(choose(&mut rule, &[busy, holding(60)]), 1, "a little prefill is cheaper than to slow 40 streams");
}

#[test]
fn load_of_others_is_what_a_scrape_shows_beyond_the_book() {
    let fleet = fleet();
    let mut rule = reference::Reference::new(reference::Weights::default(), &fleet);
    rule.scraped(0, &Gauges { running: 30, waiting: 5, kv_usage: 0.5, at: 0.0 });
    assert_eq!(choose(&mut rule, &[holding(30), holding(0)]), 1);
    rule.scraped(0, &Gauges::default());
    assert_eq!(choose(&mut rule, &[holding(30), holding(0)]), 0);
}
