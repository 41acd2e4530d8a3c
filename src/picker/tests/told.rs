//! What servers, clients and others say, and how far that is believed.

use crate::cost::Work;
use std::time::Duration;

use super::*;
use crate::cost::Speed;

fn later(seconds: u64) -> Timestamp {
    NOW.plus(Duration::from_secs(seconds))
}

#[test]
fn what_a_server_told_is_not_compared_with_what_was_sent_there_since() {
    let store = Memory::default();
    let mut picker = picker("active-request-scorer", 1);
    let told = || Reading { waiting: Some(0), running: Some(5), ..Reading::default() };
    picker.refresh(&store, snapshot(7, [told(), told()]), NOW);
    let picks: Vec<_> = (0..8).map(|_| picker.pick(&store, Ask::default(), NOW).unwrap()).collect();
    let foreign = |picker: &Picker| [0, 1].map(|at| picker.pool.foreign[at].requests);
    // The scrape of another server is a new snapshot.
    picker.refresh(&store, Snapshot { version: 2, ..snapshot(7, [told(), told()]) }, NOW);
    assert_eq!(foreign(&picker), [Some(5); 2], "five others are there");
    let mut fleet = Snapshot { version: 3, ..snapshot(7, [told(), told()]) };
    fleet.endpoints[1].signals.update(told(), later(1));
    picker.refresh(&store, fleet, later(1));
    assert_eq!(foreign(&picker), [Some(5), Some(1)], "four of them are ours");
    picks.into_iter().for_each(|pick| picker.close(pick.entry, NOW));
}

#[test]
fn a_queue_of_others_that_was_told_long_ago_is_no_queue() {
    let store = Memory::default();
    let mut picker = picker("expected-cost-scorer", 1);
    let reading = |waiting| Reading { waiting: Some(waiting), running: Some(0), ..Reading::default() };
    picker.refresh(&store, snapshot(7, [reading(50), reading(0)]), NOW);
    let prompt = read(Dialect::Generate, text("a", 10).as_bytes(), None, picker.blocks());
    let mut places = |now| -> Vec<_> {
        let picks = (0..32).map(|_| {
            let pick = picker.pick(&store, Some(&Prompt { chains: Vec::new(), ..prompt.clone() }).into(), now).unwrap();
            picker.close(pick.entry, now);
            pick.decision.ranked[0].index
        });
        picks.collect()
    };
    assert!(places(NOW).iter().all(|index| *index == 1));
    assert!(places(later(3_600)).contains(&0), "nobody has told anything for an hour");
}

#[test]
fn the_time_a_client_takes_to_send_its_body_is_not_learned_as_the_servers() {
    for (arriving, learns) in [(true, false), (false, true)] {
        let store = Memory::default();
        let mut picker = picker("expected-cost-scorer", 1);
        picker.refresh(&store, snapshot(7, [Reading::default(), Reading::default()]), NOW);
        for at in 0..60 {
            let prompt = read(Dialect::Generate, text("a", at).as_bytes(), None, picker.blocks());
            let prompt = Prompt { arriving, stream: true, chains: Vec::new(), ..prompt };
            let Pick { mut entry, mut forecast, .. } = picker.pick(&store, Some(&prompt).into(), NOW).unwrap();
            picker.first_token(&mut entry, &mut forecast, true, later(2 * at as u64));
            picker.close(entry, NOW);
        }
        picker.tick(&store, later(1));
        let speeds: Vec<_> = picker.pool.ids.iter().map(|id| picker.learner.speed(*id)).collect();
        assert_eq!(speeds.iter().any(|speed| *speed != Speed::default()), learns, "{speeds:?}");
    }
}

#[test]
fn a_length_that_is_only_declared_books_no_more_than_a_cache_holds() {
    let body = text("a", 1);
    for (blocks, tokens) in [(Some(8_192), 131_072), (None, 500_000)] {
        let store = Memory::default();
        let mut picker = picker("expected-cost-scorer", 1);
        let reading = || Reading { block_size: Some(16), num_blocks: blocks, ..Reading::default() };
        picker.refresh(&store, snapshot(7, [reading(), reading()]), NOW);
        let prompt = read(Dialect::Generate, &body.as_bytes()[..body.len() / 2], Some(40_000_000), picker.blocks());
        assert!(prompt.tokens > 4_000_000);
        let pick = picker.pick(&store, Some(&prompt).into(), NOW).unwrap();
        let line = picker.ledger.read(&store).book.line(pick.entry.endpoint());
        assert!(line.prefill_tokens <= tokens && line.kv_tokens <= tokens + 1_000, "{line:?}");
        let whole = Work { prompt_tokens: tokens, ..Work::default() };
        assert!(line.wait_seconds(NOW) <= prefill_seconds(&whole), "{} s", line.wait_seconds(NOW));
        picker.close(pick.entry, NOW);
    }
}
