use super::*;
use crate::fleet::{Health, Membership};

/// A picker of one endpoint for each role, `""` for none, with a decider.
fn picker(roles: &[&str], decider: &str) -> (Memory, Picker) {
    let endpoint = |(at, role): (usize, &&str)| {
        let labels = if role.is_empty() { "{}".to_owned() } else { format!(r#"{{"llm-d.ai/role":"{role}"}}"#) };
        format!(r#"{{"address":"10.0.0.{}:8000","labels":{labels}}}"#, at + 1)
    };
    let endpoints: Vec<_> = roles.iter().enumerate().map(endpoint).collect();
    let json =
        format!(r#"{{"pool":{{"endpoints":[{}]}},"disaggregation":{{"decider":{decider}}}}}"#, endpoints.join(","));
    let (store, mut picker) = (Memory::default(), Picker::new(Rc::new(config::load(json.as_bytes()).unwrap()), 1));
    picker.refresh(&store, fleet(roles.len()), NOW);
    (store, picker)
}

fn fleet(size: usize) -> Snapshot {
    let endpoints = (1..=size).map(|at| Endpoint::new(format!("10.0.0.{at}:8000").parse().unwrap()));
    Snapshot { version: 1, seed: 7, endpoints: endpoints.collect() }
}

const ALWAYS: &str = r#"{"type":"always-disagg-pd-decider"}"#;
const FROM_512: &str = r#"{"type":"prefix-based-pd-decider","parameters":{"nonCachedTokens":512}}"#;

fn place(picker: &mut Picker, store: &Memory, body: &str) -> Pick {
    let prompt = read(Dialect::Generate, body.as_bytes(), None, picker.blocks());
    picker.pick(store, Some(&prompt).into(), NOW).unwrap()
}

/// Where the answer is generated, and where the prompt is read if elsewhere.
fn places(pick: &Pick) -> (usize, Option<usize>) {
    (pick.decision.ranked[0].index, pick.decision.prefill.as_ref().map(|prefill| prefill.index))
}

fn lines<const N: usize>(picker: &Picker, store: &Memory) -> [Line; N] {
    let book = picker.ledger.read(store).book;
    std::array::from_fn(|at| book.line(picker.pool.ids[at]))
}

#[test]
fn one_reads_and_another_generates() {
    let (store, mut picker) = picker(&["prefill", "decode", "prefill", ""], ALWAYS);
    for chat in 0..16 {
        let pick = place(&mut picker, &store, &text(&format!("chat {chat}"), 10));
        assert!(matches!(places(&pick), (1 | 3, Some(0 | 2))), "{:?}", pick.decision);
        assert!(pick.decision.to_string().contains("; prefill by 10.0.0."), "{}", pick.decision);
        assert!(pick.decision.ranked.iter().all(|ranked| [1, 3].contains(&ranked.index)), "{:?}", pick.decision);
        picker.close(pick.entry, NOW);
    }
}

#[test]
fn nobody_reads_for_itself() {
    let (store, mut picker) = picker(&["both", "both"], ALWAYS);
    for chat in 0..16 {
        let pick = place(&mut picker, &store, &text(&format!("chat {chat}"), 10));
        assert!(matches!(places(&pick), (0, Some(1)) | (1, Some(0))), "{:?}", pick.decision);
        assert_eq!(pick.decision.ranked.len(), 1, "a retry would go to the one that reads");
        picker.close(pick.entry, NOW);
    }
}

#[test]
fn with_nobody_who_reads_for_others_one_does_both() {
    for roles in [["decode", ""], ["both", "decode"]] {
        let (store, mut picker) = picker(&roles, ALWAYS);
        for chat in 0..16 {
            let pick = place(&mut picker, &store, &text(&format!("chat {chat}"), 10));
            let (generates, reads) = places(&pick);
            assert_eq!(reads, Some(0).filter(|_| generates == 1 && roles[0] == "both"));
            picker.close(pick.entry, NOW);
        }
    }
}

#[test]
fn where_nobody_generates_nothing_is_picked() {
    let (store, mut picker) = picker(&["prefill", "encode", "decode"], ALWAYS);
    let mut fleet = fleet(3);
    fleet.endpoints[2].membership = Membership::Draining;
    picker.refresh(&store, fleet, NOW);
    assert_eq!(picker.pick(&store, Ask::default(), NOW).unwrap_err(), NoPick::AllFilteredOut);
}

#[test]
fn servers_that_generate_are_not_held_back_by_those_that_read() {
    let (store, mut picker) = picker(&["prefill", "decode"], ALWAYS);
    let mut fleet = fleet(2);
    fleet.endpoints[1].joined = NOW;
    picker.refresh(&store, fleet, NOW);
    let picks: Vec<_> = (0..4).map(|_| place(&mut picker, &store, &text("a", 10))).collect();
    assert!(picks.iter().all(|pick| places(pick) == (1, Some(0))));
    picks.into_iter().for_each(|pick| picker.close(pick.entry, NOW));
}

#[test]
fn a_prompt_that_is_mostly_cached_where_it_goes_is_read_there() {
    let (store, mut picker) = picker(&["prefill", "decode"], FROM_512);
    let first = place(&mut picker, &store, &text("a", 20));
    assert_eq!(places(&first), (1, Some(0)));
    assert!(first.forecast.belief.is_none(), "what was handed over counts as cached");
    let again = place(&mut picker, &store, &text("a", 20));
    assert_eq!(places(&again), (1, None));
    assert!(again.forecast.belief.is_some());
    let short = place(&mut picker, &store, &text("b", 7));
    assert_eq!(places(&short), (1, None), "448 tokens");
    [first, again, short].into_iter().for_each(|pick| picker.close(pick.entry, NOW));
}

#[test]
fn the_prompt_is_in_both_caches() {
    let (store, mut picker) = picker(&["prefill", "decode"], ALWAYS);
    for turn in 0..2 {
        let pick = place(&mut picker, &store, &text("a", 10));
        let [generates, reads] = lines(&picker, &store).map(|line: Line| line.clock >> 16);
        assert_eq!([generates, reads], [10, 10], "turn {turn}: nothing new the second time");
        picker.close(pick.entry, NOW);
    }
}

#[test]
fn requests_without_a_prompt_or_an_answer_are_not_split() {
    let (store, mut picker) = picker(&["prefill", "decode"], ALWAYS);
    let bare = picker.pick(&store, Ask::default(), NOW).unwrap();
    let input = format!(r#"{{"input":"{}"}}"#, "word ".repeat(4000));
    let prompt = read(Dialect::Embeddings, input.as_bytes(), None, picker.blocks());
    let embeddings = picker.pick(&store, Some(&prompt).into(), NOW).unwrap();
    for pick in [bare, embeddings] {
        assert_eq!(places(&pick), (1, None));
        picker.close(pick.entry, NOW);
    }
}

#[test]
fn what_is_to_be_read_counts_where_it_is_read_and_until_the_first_token() {
    let (store, mut picker) = picker(&["prefill", "decode"], ALWAYS);
    let mut pick = place(&mut picker, &store, &text("a", 10));
    let [reads, generates] = lines(&picker, &store);
    assert_eq!((reads.requests, reads.prefill_tokens, reads.context_tokens, reads.kv_tokens), (1, 640, 0, 640));
    assert!(reads.prefill_micros > 0);
    assert_eq!((generates.requests, generates.prefill_tokens, generates.prefill_micros), (1, 0, 0));
    assert_eq!((generates.context_tokens, generates.kv_tokens), (640 + 256, 640 + 256));
    picker.first_token(&mut pick.entry, &mut pick.forecast, true, NOW);
    let [reads, generates] = lines(&picker, &store);
    assert_eq!((reads.requests, reads.prefill_tokens, reads.kv_tokens, reads.prefill_micros), (0, 0, 0, 0));
    assert_eq!((generates.requests, generates.prefilling, generates.context_tokens), (1, 0, 640 + 256));
    picker.close(pick.entry, NOW);
}

#[test]
fn a_slow_reader_gets_fewer_prompts() {
    let (store, mut picker) = picker(&["prefill", "prefill", "decode"], ALWAYS);
    let mut now = NOW;
    let mut serve = |picker: &mut Picker, chat: usize| {
        let body = text(&format!("chat {chat}"), 20 + chat % 40);
        let prompt = read(Dialect::Generate, body.as_bytes(), None, picker.blocks());
        let mut pick = picker.pick(&store, Some(&prompt).into(), now).unwrap();
        let reads = places(&pick).1.unwrap();
        let seconds = pick.forecast.first_token_seconds * [3.0, 1.0][reads];
        now = Timestamp(now.0 + (seconds * 1000.0) as u64);
        picker.first_token(&mut pick.entry, &mut pick.forecast, true, now);
        picker.close(pick.entry, now);
        now = Timestamp(now.0 + 250);
        picker.tick(&store, now);
        reads
    };
    for chat in 0..100 {
        serve(&mut picker, chat);
    }
    let at_the_slow_one = (100..140).filter(|chat| serve(&mut picker, *chat) == 0).count();
    assert!(at_the_slow_one < 10, "{at_the_slow_one} of 40");
    let speed = |at: usize| picker.learner.speed(picker.pool.ids[at]).prefill;
    assert!(speed(0) > 1.3 * speed(1), "{} {}", speed(0), speed(1));
}

#[test]
fn who_seems_dead_reads_nothing() {
    let (store, mut picker) = picker(&["prefill", "decode"], ALWAYS);
    let mut reads = |dead: [bool; 2]| {
        let mut fleet = fleet(2);
        for (endpoint, dead) in fleet.endpoints.iter_mut().zip(dead) {
            endpoint.health = if dead { Health::Unreachable } else { Health::Serving };
        }
        picker.refresh(&store, fleet, NOW);
        let pick = place(&mut picker, &store, &text("a", 10));
        let (_, reads) = places(&pick);
        picker.close(pick.entry, NOW);
        reads
    };
    assert_eq!(reads([true, false]), None);
    assert_eq!(reads([false, false]), Some(0));
    assert_eq!(reads([true, true]), Some(0), "it is the metrics that fail");
}

#[test]
fn of_a_failing_reader_that_is_due_one_worker_takes_the_probe() {
    let json = r#"{"pool":{"endpoints":[
        {"address":"10.0.0.1:8000","labels":{"llm-d.ai/role":"decode"}},
        {"address":"10.0.0.2:8000","labels":{"llm-d.ai/role":"prefill"}},
        {"address":"10.0.0.3:8000","labels":{"llm-d.ai/role":"prefill"}}]},
        "disaggregation":{"decider":{"type":"always-disagg-pd-decider"}}}"#;
    let config = Rc::new(config::load(json.as_bytes()).unwrap());
    let store = Memory::default();
    let mut workers: Vec<_> = (0..8).map(|seed| Picker::new(config.clone(), seed)).collect();
    let soon = Timestamp(NOW.0 + 300);
    for picker in &mut workers {
        picker.refresh(&store, fleet(3), NOW);
    }
    let reader = workers[0].pool.ids[1];
    (0..3).for_each(|_| workers[0].learner.observe_failure(reader, 1.0, NOW));
    workers.iter_mut().for_each(|picker| picker.tick(&store, soon));
    let later = Timestamp(NOW.0 + 60_000);
    let mut probes = 0;
    for round in 0..5 {
        for picker in &mut workers {
            let prompt = read(Dialect::Generate, text(&format!("{round}"), 10).as_bytes(), None, picker.blocks());
            let pick = picker.pick(&store, Some(&prompt).into(), later).unwrap();
            probes += u32::from(places(&pick).1 == Some(1));
            picker.close(pick.entry, later);
        }
    }
    assert_eq!(probes, 1);
}
