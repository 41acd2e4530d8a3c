mod split;
mod told;

use xxhash_rust::xxh3::xxh3_64;

use super::*;
use crate::config;
use crate::fleet::Endpoint;
use crate::ledger::Line;
use crate::prompt::{Dialect, read};
use crate::schedule::Ranked;
use crate::scrape::{Lora, Reading};
use crate::store::Memory;

mod passive_health;

const NOW: Timestamp = Timestamp(1_796_000_000_000);

fn picker(scorer: &str, seed: u64) -> Picker {
    configured(scorer, "", seed)
}

fn configured(scorer: &str, settings: &str, seed: u64) -> Picker {
    let json = format!(
        r#"{{{settings}"pool":{{"endpoints":[{{"address":"10.0.0.1:8000"}},{{"address":"10.0.0.2:8000"}}]}},
            "profile":{{"scorers":[{{"type":"{scorer}"}}],"picker":{{"type":"max-score-picker"}}}}}}"#
    );
    Picker::new(Rc::new(config::load(json.as_bytes()).unwrap()), seed)
}

fn snapshot(seed: u64, readings: [Reading; 2]) -> Snapshot {
    let mut at = 0;
    let endpoints = readings.map(|reading| {
        at += 1;
        let mut endpoint = Endpoint::new(format!("10.0.0.{at}:8000").parse().unwrap());
        endpoint.signals.update(reading, NOW);
        endpoint
    });
    Snapshot { version: 1, seed, endpoints: endpoints.into() }
}

fn ask(picker: &mut Picker, store: &Memory, body: &str) -> Ranked {
    let prompt = read(Dialect::Generate, body.as_bytes(), None, picker.blocks());
    let Pick { decision, entry, .. } = picker.pick(store, Some(&prompt).into(), NOW).unwrap();
    picker.close(entry, NOW);
    decision.ranked.into_iter().next().unwrap()
}

fn text(name: &str, blocks: usize) -> String {
    format!(r#"{{"text":"{}"}}"#, format!("{name:>16}").repeat(16 * blocks))
}

#[test]
fn nothing_is_placed_before_anything_is_known() {
    let mut picker = picker("queue-scorer", 1);
    assert_eq!(picker.pick(&Memory::default(), Ask::default(), NOW).unwrap_err(), NoPick::NoSnapshot);
}

#[test]
fn one_worker_finds_what_another_placed() {
    let store = Memory::default();
    let [mut one, mut two] = [1, 2].map(|seed| picker("prefix-cache-scorer", seed));
    for worker in [&mut one, &mut two] {
        worker.refresh(&store, snapshot(7, [Reading::default(), Reading::default()]), NOW);
    }
    for chat in 0..16 {
        let body = text(&format!("chat {chat}"), 10);
        let first = ask(&mut one, &store, &body);
        let second = ask(&mut two, &store, &body);
        assert_eq!((second.index, second.total), (first.index, 1.0), "chat {chat}");
    }
}

#[test]
fn gateways_that_know_nothing_of_each_other_send_a_prompt_to_the_same_place() {
    for settings in [r#""ledger":"private","#, r#""gateways":3,"#] {
        for chat in 0..16 {
            let body = text(&format!("chat {chat}"), 40);
            let placed = [1, 2, 3].map(|gateway| {
                let (store, mut picker) = (Memory::default(), configured("expected-cost-scorer", settings, gateway));
                picker.refresh(&store, snapshot(gateway, [Reading::default(), Reading::default()]), NOW);
                ask(&mut picker, &store, &body).index
            });
            assert!(placed.iter().all(|index| *index == placed[0]), "chat {chat}: {placed:?} with {settings}");
        }
    }
}

#[test]
fn p52_hashes_depend_on_the_secret_of_the_deployment() {
    let hashes = |seed| {
        let mut picker = picker("prefix-cache-scorer", 1);
        picker.refresh(&Memory::default(), snapshot(seed, [Reading::default(), Reading::default()]), NOW);
        read(Dialect::Generate, text("a", 4).as_bytes(), None, picker.blocks()).chains
    };
    assert_eq!(hashes(7), hashes(7));
    assert_ne!(hashes(7), hashes(8));
}

#[test]
fn a_server_is_believed_to_hold_no_more_than_its_cache() {
    let store = Memory::default();
    let mut picker = picker("prefix-cache-scorer", 1);
    let small = || Reading { block_size: Some(16), num_blocks: Some(8), ..Reading::default() };
    picker.refresh(&store, snapshot(7, [small(), small()]), NOW);
    ask(&mut picker, &store, &text("a", 10));
    // 128 tokens are two of our blocks.
    assert_eq!(ask(&mut picker, &store, &text("a", 10)).total, 0.2);
}

#[test]
fn the_adapter_of_lora_path_goes_where_it_is_loaded() {
    let store = Memory::default();
    let mut picker = picker("lora-affinity-scorer", 1);
    let lora = |name: &str| Reading {
        lora: Some(Lora { max: 1, running: vec![name.as_bytes().into()], waiting: Vec::new() }),
        ..Reading::default()
    };
    picker.refresh(&store, snapshot(7, [lora("sql"), lora("chat")]), NOW);
    for _ in 0..8 {
        assert_eq!(ask(&mut picker, &store, r#"{"text":"hi","lora_path":"chat"}"#).index, 1);
        assert_eq!(ask(&mut picker, &store, r#"{"text":"hi","model":"base","lora_path":"sql"}"#).index, 0);
    }
}

#[test]
fn an_adapter_is_worth_a_short_wait_and_no_long_one() {
    let store = Memory::default();
    let mut picker = picker("expected-cost-scorer", 1);
    let lora = |names: &[&str], waiting| Reading {
        lora: Some(Lora {
            max: 4,
            running: names.iter().map(|name| name.as_bytes().into()).collect(),
            waiting: vec![],
        }),
        waiting: Some(waiting),
        running: Some(0),
        ..Reading::default()
    };
    let body = r#"{"text":"hi","model":"base","lora_path":"sql"}"#;
    picker.refresh(&store, snapshot(7, [lora(&["chat"], 0), lora(&["sql"], 0)]), NOW);
    (0..8).for_each(|_| assert_eq!(ask(&mut picker, &store, body).index, 1, "both idle"));
    picker.refresh(&store, snapshot(7, [Reading::default(), lora(&["sql"], 0)]), NOW);
    (0..8).for_each(|_| assert_eq!(ask(&mut picker, &store, body).index, 1, "the other never had an adapter"));
    picker.refresh(&store, snapshot(7, [lora(&["chat"], 0), lora(&["sql"], 50)]), NOW);
    (0..8).for_each(|_| assert_eq!(ask(&mut picker, &store, body).index, 0, "a long queue where it is loaded"));
    picker.refresh(&store, snapshot(7, [lora(&["chat"], 0), lora(&["sql"], 0)]), NOW);
    let base: Vec<_> = (0..32).map(|_| ask(&mut picker, &store, r#"{"text":"hi","model":"base"}"#).index).collect();
    assert!(base.contains(&0) && base.contains(&1), "the base model is everywhere: {base:?}");
}

#[test]
fn workers_take_turns_from_places_of_their_own() {
    let store = Memory::default();
    let config =
        r#"{"pool":{"endpoints":[{"address":"10.0.0.1:8000"},{"address":"10.0.0.2:8000"}]},"profile":"round-robin"}"#;
    let config = Rc::new(config::load(config.as_bytes()).unwrap());
    let firsts = (0..16).map(|seed| {
        let mut worker = Picker::new(Rc::clone(&config), seed);
        worker.refresh(&store, snapshot(7, [Reading::default(), Reading::default()]), NOW);
        let turns: Vec<_> = (0..6).map(|_| ask(&mut worker, &store, r#"{"text":"hi"}"#).index).collect();
        assert!(turns.windows(2).all(|pair| pair[0] != pair[1]), "{turns:?}");
        turns[0]
    });
    let begin_at_the_second = firsts.sum::<usize>();
    assert!((1..16).contains(&begin_at_the_second), "{begin_at_the_second} of 16");
}

#[test]
fn what_others_have_there_counts_once() {
    let store = Memory::default();
    let mut picker = picker("expected-cost-scorer", 1);
    let prompt = |picker: &Picker| read(Dialect::Generate, text("a", 10).as_bytes(), None, picker.blocks());
    let busy = Reading { waiting: Some(30), running: Some(30), ..Reading::default() };
    let idle = || Reading { waiting: Some(0), running: Some(0), ..Reading::default() };
    picker.refresh(&store, snapshot(7, [busy, idle()]), NOW);
    let asked = prompt(&picker);
    let picks: Vec<_> = (0..8).map(|_| picker.pick(&store, Some(&asked).into(), NOW).unwrap()).collect();
    assert!(picks.iter().all(|pick| pick.decision.ranked[0].index == 1), "the queue of others is a wait");
    // The scrape sees our own eight. They are no strangers.
    let own = Reading { waiting: Some(0), running: Some(8), ..Reading::default() };
    picker.refresh(&store, snapshot(7, [idle(), own]), NOW);
    assert_eq!(picker.pool.foreign[1].requests, Some(0));
    picks.into_iter().for_each(|pick| picker.close(pick.entry, NOW));
}

#[test]
fn a_prefix_that_many_share_is_in_the_cache_once() {
    let store = Memory::default();
    let mut picker = picker("prefix-cache-scorer", 1);
    picker.refresh(&store, snapshot(7, [Reading::default(), Reading::default()]), NOW);
    let prompt = read(Dialect::Generate, text("a", 10).as_bytes(), None, picker.blocks());
    let picks: Vec<_> = (0..10).map(|_| picker.pick(&store, Some(&prompt).into(), NOW).unwrap()).collect();
    let held: u32 = picker.ledger.read(&store).book.lines().map(|(_, line)| line.kv_tokens).sum();
    let answers = 10 * picker.learner.expected_output(xxh3_64(b""), None);
    assert!((640..700).contains(&(held - answers)), "{held} with {answers} of answers");
    picks.into_iter().for_each(|pick| picker.close(pick.entry, NOW));
}

#[test]
fn a_draining_server_gets_no_new_request_and_its_streams_go_on() {
    let (store, mut before) = (Memory::default(), picker("active-request-scorer", 1));
    before.refresh(&store, snapshot(7, [Reading::default(), Reading::default()]), NOW);
    let streams: Vec<_> = (0..2).map(|_| before.pick(&store, Ask::default(), NOW).unwrap()).collect();

    let pool = r#"{"address":"10.0.0.1:8000","draining":true},{"address":"10.0.0.2:8000"}"#;
    let json = format!(r#"{{"pool":{{"endpoints":[{pool}]}},"profile":{{"picker":{{"type":"random-picker"}}}}}}"#);
    let mut after = Picker::new(Rc::new(config::load(json.as_bytes()).unwrap()), 2);
    after.refresh(&store, snapshot(7, [Reading::default(), Reading::default()]), NOW);
    let requests = |picker: &Picker| picker.ledger.read(&store).book.lines().map(|(_, l)| l.requests).sum::<u32>();
    for _ in 0..20 {
        let pick = after.pick(&store, Ask::default(), NOW).unwrap();
        assert_eq!(pick.decision.ranked.iter().map(|ranked| ranked.index).collect::<Vec<_>>(), [1]);
        after.close(pick.entry, NOW);
    }
    after.tick(&store, NOW);
    assert_eq!(requests(&after), 2, "the streams of before are still counted");
    streams.into_iter().for_each(|pick| before.close(pick.entry, NOW));
    before.tick(&store, NOW);
    assert_eq!(requests(&after), 0);
}

#[test]
fn nothing_is_picked_where_all_are_draining() {
    let json = br#"{"pool":{"endpoints":[{"address":"10.0.0.1:8000","draining":true}]}}"#;
    let mut picker = Picker::new(Rc::new(config::load(json).unwrap()), 2);
    picker.refresh(&Memory::default(), snapshot(7, [Reading::default(), Reading::default()]), NOW);
    assert_eq!(picker.pick(&Memory::default(), Ask::default(), NOW).unwrap_err(), NoPick::AllFilteredOut);
}

#[test]
fn a_newcomer_is_no_place_for_a_herd_until_it_is_warm() {
    let (store, mut picker) = (Memory::default(), picker("active-request-scorer", 1));
    let mut fleet = snapshot(7, [Reading::default(), Reading::default()]);
    fleet.endpoints[1].joined = NOW;
    picker.refresh(&store, fleet, NOW);
    // Requests at the newcomer when 40 more have come, `ms` after it has.
    let mut after = |ms| {
        let picks: Vec<_> =
            (0..40).map(|_| picker.pick(&store, Ask::default(), Timestamp(NOW.0 + ms)).unwrap()).collect();
        let there = picks.iter().filter(|pick| pick.decision.ranked[0].index == 1).count();
        picks.into_iter().for_each(|pick| picker.close(pick.entry, NOW));
        there
    };
    assert_eq!(after(0), 1, "it takes part at once");
    assert_eq!(after(15_000), 13, "half of what the other one has, 27");
    assert_eq!(after(30_000), 20, "its full share");
}

#[test]
fn cold_prompts_go_around_among_all_workers() {
    let store = Memory::default();
    let [mut one, mut two] = [1, 2].map(|seed| picker("no-hit-lru-scorer", seed));
    for worker in [&mut one, &mut two] {
        worker.refresh(&store, snapshot(7, [Reading::default(), Reading::default()]), NOW);
    }
    let cold = |worker: &mut Picker, name: &str| ask(worker, &store, &text(name, 4)).index;
    let first = cold(&mut one, "a");
    assert_eq!(cold(&mut two, "b"), 1 - first, "the other worker knows");
    assert_eq!(cold(&mut one, "c"), first);
    // A prompt that is cached somewhere and one without a body leave the order as it is.
    ask(&mut two, &store, &text("b", 4));
    let no_body = two.pick(&store, Ask::default(), NOW).unwrap();
    two.close(no_body.entry, NOW);
    assert_eq!(cold(&mut two, "d"), 1 - first);
}

#[test]
fn a_server_that_came_back_is_first_in_line_for_cold_prompts() {
    let (store, mut picker) = (Memory::default(), picker("no-hit-lru-scorer", 1));
    let mut fleet = snapshot(7, [Reading::default(), Reading::default()]);
    picker.refresh(&store, fleet.clone(), NOW);
    let places = ["a", "b"].map(|name| ask(&mut picker, &store, &text(name, 4)).index);
    fleet.endpoints[places[1]].generation += 1;
    picker.refresh(&store, fleet, NOW);
    assert_eq!(ask(&mut picker, &store, &text("c", 4)).index, places[1]);
}

#[test]
fn nothing_is_remembered_of_cold_prompts_where_no_plugin_asks() {
    let (store, mut picker) = (Memory::default(), picker("prefix-cache-scorer", 1));
    picker.refresh(&store, snapshot(7, [Reading::default(), Reading::default()]), NOW);
    ask(&mut picker, &store, &text("a", 4));
    assert_eq!(store.get(b"endpoint-picker/default/cold").value, None);
}

/// A profile with these filters over two servers, of which the second is labelled.
fn filtered(filters: &str, labels: &str) -> Picker {
    let pool = format!(r#"{{"address":"10.0.0.1:8000"}},{{"address":"10.0.0.2:8000","labels":{labels}}}"#);
    let profile = format!(r#"{{"filters":{filters},"picker":{{"type":"random-picker"}}}}"#);
    let json = format!(r#"{{"pool":{{"endpoints":[{pool}]}},"profile":{profile}}}"#);
    let mut picker = Picker::new(Rc::new(config::load(json.as_bytes()).unwrap()), 1);
    picker.refresh(&Memory::default(), snapshot(7, [Reading::default(), Reading::default()]), NOW);
    picker
}

#[test]
fn labels_of_the_configuration_decide_who_may_serve() {
    let labels = r#"{"llm-d.ai/role":"prefill","gpu":"h100"}"#;
    for (filter, places) in [
        (r#"[{"type":"decode-filter"}]"#, Ok(0)),
        (r#"[{"type":"prefill-filter"}]"#, Ok(1)),
        (r#"[{"type":"label-selector-filter","parameters":{"matchLabels":{"gpu":"h100"}}}]"#, Ok(1)),
        (r#"[{"type":"decode-filter"},{"type":"prefill-filter"}]"#, Err(NoPick::AllFilteredOut)),
    ] {
        let mut picker = filtered(filter, labels);
        for _ in 0..8 {
            let pick = picker.pick(&Memory::default(), Ask::default(), NOW);
            let place = pick.map(|pick| {
                picker.close(pick.entry, NOW);
                pick.decision.ranked[0].index
            });
            assert_eq!(place, places, "{filter}");
        }
    }
}

#[test]
fn a_newcomer_that_alone_can_serve_is_not_held_back() {
    let mut picker = filtered(r#"[{"type":"prefill-filter"}]"#, r#"{"llm-d.ai/role":"prefill"}"#);
    let (store, mut fleet) = (Memory::default(), snapshot(7, [Reading::default(), Reading::default()]));
    fleet.endpoints[1].joined = NOW;
    picker.refresh(&store, fleet, NOW);
    let picks: Vec<_> = (0..4).map(|_| picker.pick(&store, Ask::default(), NOW).unwrap()).collect();
    assert!(picks.iter().all(|pick| pick.decision.ranked[0].index == 1));
    picks.into_iter().for_each(|pick| picker.close(pick.entry, NOW));
}
