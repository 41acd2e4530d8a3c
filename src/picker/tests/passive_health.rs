//! Requests that fail, and who gets the next ones.

use super::*;
use crate::outcome::Outcome;

fn at(ms: u64) -> Timestamp {
    Timestamp(NOW.0 + ms)
}

fn worker(store: &Memory, seed: u64) -> Picker {
    let mut picker = picker("active-request-scorer", seed);
    picker.refresh(store, snapshot(7, [Reading::default(), Reading::default()]), NOW);
    picker
}

/// Sends a request, which fails at the first endpoint if that is `broken`. Whether it went there.
fn send(picker: &mut Picker, store: &Memory, broken: bool, now: Timestamp) -> bool {
    let Pick { decision, entry, .. } = picker.pick(store, Ask::default(), now).unwrap();
    let first = decision.ranked[0].index == 0;
    let outcome = if first && broken { Outcome::Failed } else { Outcome::Served };
    picker.answered(&entry, b"", outcome, || now);
    picker.close(entry, now);
    picker.tick(store, now);
    first
}

/// In how many of 100 ms, of one request each, the first endpoint got it.
fn times(picker: &mut Picker, store: &Memory, broken: bool, from: u64, to: u64) -> Vec<u64> {
    (from..to).filter(|tenth| send(picker, store, broken, at(100 * tenth))).collect()
}

#[test]
fn a_failing_server_is_probed_ever_more_rarely_and_gets_its_share_back_with_one_answer() {
    let (store, mut picker) = (Memory::default(), worker(&Memory::default(), 1));
    times(&mut picker, &store, true, 0, 30);
    assert_eq!(picker.failing(), 1);
    let probes = times(&mut picker, &store, true, 30, 1300);
    assert!((5..=9).contains(&probes.len()), "{probes:?}");
    let gaps: Vec<_> = probes.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.is_sorted() && gaps.last().is_some_and(|gap| (250..=400).contains(gap)), "{gaps:?}");
    let healed = times(&mut picker, &store, false, 1300, 1900);
    assert!(healed.len() > 60, "{}", healed.len());
    assert_eq!(picker.failing(), 0);
}

#[test]
fn of_many_workers_one_takes_the_probe() {
    let store = Memory::default();
    let mut workers: Vec<_> = (0..8).map(|seed| worker(&store, seed)).collect();
    for tenth in 0..20 {
        workers.iter_mut().for_each(|picker| {
            send(picker, &store, true, at(100 * tenth));
        });
    }
    assert!(workers.iter().all(|picker| picker.failing() == 1));
    // A minute later a probe is due for all of them, and all look at the same moment.
    let picks: Vec<_> =
        workers.iter_mut().map(|picker| picker.pick(&store, Ask::default(), at(60_000)).unwrap()).collect();
    let probes = picks.iter().filter(|pick| pick.decision.ranked[0].index == 0).count();
    assert_eq!(probes, 1);
}

#[test]
fn where_both_fail_both_are_used() {
    let (store, mut picker) = (Memory::default(), worker(&Memory::default(), 1));
    let mut first = 0;
    for tenth in 0..200 {
        let Pick { decision, entry, .. } = picker.pick(&store, Ask::default(), at(100 * tenth)).unwrap();
        first += usize::from(decision.ranked[0].index == 0);
        picker.answered(&entry, b"", Outcome::Failed, || at(100 * tenth));
        picker.close(entry, at(100 * tenth));
        picker.tick(&store, at(100 * tenth));
    }
    assert_eq!(picker.failing(), 2);
    assert!((60..=140).contains(&first), "{first}");
}

#[test]
fn a_subset_in_which_all_fail_is_kept_to() {
    let (store, mut picker) = (Memory::default(), worker(&Memory::default(), 1));
    times(&mut picker, &store, true, 0, 30);
    let subset = Subset::parse(b"10.0.0.1:8000");
    let ask = Ask { subset: Some(&subset), ..Ask::default() };
    for _ in 0..3 {
        assert_eq!(picker.pick(&store, ask, at(3_000)).unwrap().decision.ranked[0].index, 0);
    }
}

#[test]
fn a_failing_server_that_alone_can_serve_a_request_gets_it() {
    let pool = r#"{"address":"10.0.0.1:8000","labels":{"llm-d.ai/role":"decode"}},
                  {"address":"10.0.0.2:8000","labels":{"llm-d.ai/role":"prefill"}}"#;
    let profile = r#"{"filters":[{"type":"decode-filter"}],"picker":{"type":"max-score-picker"}}"#;
    let json = format!(r#"{{"pool":{{"endpoints":[{pool}]}},"profile":{profile}}}"#);
    let (store, mut picker) = (Memory::default(), Picker::new(Rc::new(config::load(json.as_bytes()).unwrap()), 1));
    picker.refresh(&store, snapshot(7, [Reading::default(), Reading::default()]), NOW);
    assert_eq!(times(&mut picker, &store, true, 0, 100).len(), 100);
    assert_eq!(picker.failing(), 1);
}

#[test]
fn a_request_that_loses_a_probe_goes_to_a_sound_server() {
    let (store, mut picker) = (Memory::default(), worker(&Memory::default(), 1));
    times(&mut picker, &store, true, 0, 30);
    let full = Full(&store);
    for second in 60..90 {
        let pick = picker.pick(&full, Ask::default(), at(1000 * second)).unwrap();
        assert_eq!(pick.decision.ranked[0].index, 1, "no probe can be written down");
        picker.close(pick.entry, at(1000 * second));
    }
}

/// A store that takes nothing.
struct Full<'a>(&'a Memory);

impl Store for Full<'_> {
    fn get(&self, key: &[u8]) -> crate::store::Found {
        self.0.get(key)
    }

    fn set(&self, _: &[u8], _: &[u8], _: u32) -> bool {
        false
    }
}
