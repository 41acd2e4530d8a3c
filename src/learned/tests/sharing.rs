//! What many workers learn.

use std::cell::Cell;

use super::*;

/// A store in which another worker is faster the first few times.
struct Contended<'a> {
    store: &'a Memory,
    lost: Cell<u32>,
}

impl Store for Contended<'_> {
    fn get(&self, key: &[u8]) -> Found {
        self.store.get(key)
    }

    fn set(&self, key: &[u8], value: &[u8], cas: u32) -> bool {
        if let Some(left) = self.lost.get().checked_sub(1) {
            self.lost.set(left);
            return false;
        }
        self.store.set(key, value, cas)
    }
}

fn at(millis: u64) -> Timestamp {
    START.plus(Duration::from_millis(millis))
}

/// The `i`-th answer of a fleet of eight, the last of which is slow.
fn answer(learner: &mut Learner, i: u64, now: Timestamp) {
    let (endpoint, slowness) = (EndpointId(i % 8), if i % 8 == 7 { 2.0 } else { 1.0 });
    let predicted = (i * 7 % 20 + 1) as f64 / 10.0;
    learner.observe_prefill(predicted);
    learner.observe_first_token(endpoint, predicted, 0.05 + slowness * predicted, now);
    learner.observe_decode(endpoint, 0.02, slowness * 0.03, now);
    learner.observe_output(1, 100 + (i * 13 % 700) as u32, now);
}

#[test]
fn many_workers_learn_what_one_alone_would() {
    let (shared, alone) = (Memory::default(), Memory::default());
    let mut one = learner();
    let mut many: Vec<_> = (0..16).map(|_| learner()).collect();
    // A hundred answers per second, dealt in turn.
    for i in 0..3000 {
        let now = at(10 * i);
        answer(&mut one, i, now);
        one.tick(&alone, &[], now);
        answer(&mut many[i as usize * 5 % 16], i, now);
        many.iter_mut().for_each(|worker| worker.tick(&shared, &[], now));
    }
    for _ in 0..2 {
        many.iter_mut().for_each(|worker| {
            worker.updated = START;
            worker.tick(&shared, &[], at(31_000));
        });
    }
    one.tick(&alone, &[], at(31_000));
    for worker in &many {
        for endpoint in (0..9).map(EndpointId) {
            let (alone, shared) = (one.speed(endpoint), worker.speed(endpoint));
            assert!(near(shared.prefill, alone.prefill) && near(shared.decode, alone.decode), "{shared:?} {alone:?}");
        }
        let (alone, shared) = (one.expected_output(1, None), worker.expected_output(1, None));
        assert!(alone.abs_diff(shared) <= alone / 10, "{shared} {alone}");
        assert!(near(worker.mean_prefill().unwrap(), one.mean_prefill().unwrap()));
    }
    assert!(one.speed(EndpointId(7)).decode > 1.5 * one.speed(EndpointId(0)).decode);
}

#[test]
fn batches_that_take_turns_are_learned_as_if_by_one() {
    let (shared, alone) = (Memory::default(), Memory::default());
    let (mut one, mut two, mut three) = (learner(), learner(), learner());
    for (turn, range) in [0..40, 40..41, 41..100].into_iter().enumerate() {
        let now = at(1000 * turn as u64);
        let worker = if turn % 2 == 0 { &mut two } else { &mut three };
        range.clone().for_each(|i| answer(worker, i, now));
        worker.tick(&shared, &[], now);
        range.for_each(|i| answer(&mut one, i, now));
    }
    one.tick(&alone, &[], at(9000));
    three.tick(&shared, &[], at(9000));
    for endpoint in (0..9).map(EndpointId) {
        let (alone, shared) = (one.speed(endpoint), three.speed(endpoint));
        assert!((alone.prefill - shared.prefill).abs() + (alone.decode - shared.decode).abs() < 1e-9);
    }
    assert_eq!(one.expected_output(1, None), three.expected_output(1, None));
}

#[test]
fn a_worker_that_starts_knows_what_the_others_know() {
    let store = Memory::default();
    let mut old = learner();
    (0..400).for_each(|i| answer(&mut old, i, START));
    old.tick(&store, &[], START);
    let mut new = learner();
    new.tick(&store, &[], at(1));
    assert_eq!((new.speeds, new.known), (old.speeds, old.known));
}

#[test]
fn a_lost_race_loses_no_observation() {
    let store = Memory::default();
    for lost in [1, TRIES - 1, TRIES, TRIES + 1] {
        let (mut worker, before) = (learner(), observed(&store));
        (0..10).for_each(|i| answer(&mut worker, i, START));
        let contended = Contended { store: &store, lost: Cell::new(lost) };
        (0..3).for_each(|tick| worker.tick(&contended, &[], at(20 * tick)));
        let ten = Fading { kept: KEEP_PREFILL.powi(10), sums: [(0..10).map(|i| KEEP_PREFILL.powi(i)).sum::<f64>()] };
        assert!((observed(&store) - (ten.kept * before + ten.sums[0])).abs() < 1e-9, "{lost} lost");
    }
}

/// How many prefills are in the record, the faded ones less.
fn observed(store: &Memory) -> f64 {
    let value = store.get(b"endpoint-picker/p/learned").value;
    let record = value.and_then(|value| Record::decode(envelope::open(b"endpoint-picker/p/learned", &value)?.payload));
    record.map_or(0.0, |record| record.prefill.sums[0])
}

#[test]
fn a_value_that_cannot_be_read_is_replaced_by_what_the_worker_knew() {
    let store = Memory::default();
    let key = b"endpoint-picker/p/learned";
    let mut worker = learner();
    (0..100).for_each(|i| answer(&mut worker, i, START));
    worker.tick(&store, &[], START);
    let (before, whole) = (observed(&store), store.get(key).value.unwrap());
    let nonsense = envelope::seal(key, 0, &[0xff; 100]);
    let elsewhere = envelope::seal(b"endpoint-picker/q/learned", 0, &worker.known.encode());
    for (turn, odd) in (1..).zip([&whole[..whole.len() / 2], b"foreign", b"", &nonsense[..], &elsewhere[..]]) {
        store.set(key, odd, store.get(key).cas);
        worker.tick(&store, &[], at(1000 * turn));
        worker.observe_prefill(0.1);
        worker.tick(&store, &[], at(1000 * turn + 500));
        assert!(observed(&store) > before - 1.0, "{turn}");
    }
}

#[test]
fn no_cut_of_a_record_is_taken_for_another() {
    let mut worker = learner();
    (0..100).for_each(|i| answer(&mut worker, i, START));
    settle(&mut worker);
    let bytes = worker.known.encode();
    assert_eq!(Record::decode(&bytes).as_ref(), Some(&worker.known));
    // Between two lines a record may end; the envelope knows better.
    let cuts = (0..bytes.len()).filter(|cut| Record::decode(&bytes[..*cut]).is_some());
    assert!(cuts.count() <= 9);
}

#[test]
fn endpoints_that_left_are_forgotten_after_a_minute_and_idle_ones_are_not() {
    let store = Memory::default();
    let mut worker = learner();
    (0..100).for_each(|i| answer(&mut worker, i, START));
    let pool = [A, B];
    worker.tick(&store, &pool, at(50_000));
    assert_eq!(worker.speeds.len(), 8);
    worker.observe_prefill(0.1);
    worker.tick(&store, &pool, at(3_600_000));
    assert_eq!(worker.speeds.iter().map(|(id, _)| *id).collect::<Vec<_>>(), pool);
    let mut other = learner();
    other.tick(&store, &pool, at(3_600_000));
    assert_eq!(other.speeds.len(), 2);
}

#[test]
fn a_quiet_worker_does_not_write() {
    let store = Memory::default();
    let mut worker = learner();
    worker.tick(&store, &[], START);
    assert_eq!(store.bytes(), 0);
    (0..10).for_each(|i| answer(&mut worker, i, START));
    worker.tick(&store, &[], at(10));
    assert_eq!(store.bytes(), 0, "nor too often");
    worker.tick(&store, &[], at(200));
    let written = store.get(b"endpoint-picker/p/learned").cas;
    worker.tick(&store, &[], at(400));
    assert_eq!(store.get(b"endpoint-picker/p/learned").cas, written);
}

#[test]
fn a_probe_that_cannot_be_taken_is_no_longer_due() {
    let (store, due) = (Memory::default(), at(2_000));
    let mut worker = learner();
    (0..3).for_each(|_| worker.observe_failure(A, 1.0, START));
    worker.tick(&store, &[A], START);
    assert_eq!((worker.failing(), worker.standing(A, START)), (1, Standing::Failing));
    for (lost, taken) in [(TRIES, false), (TRIES - 1, true)] {
        let mut worker = learner();
        worker.tick(&store, &[A], due);
        assert_eq!(worker.standing(A, due), Standing::Due);
        let contended = Contended { store: &store, lost: Cell::new(lost) };
        assert_eq!(worker.probe(&contended, A, due), taken);
        assert_eq!(worker.standing(A, due), Standing::Failing);
    }
    assert!(!worker.probe(&store, A, due), "another worker has it");
    assert_eq!(worker.standing(A, due), Standing::Failing);
}

#[test]
fn answers_of_servers_that_do_not_fail_are_not_written_down() {
    let mut worker = learner();
    assert!(!worker.is_troubled(A));
    worker.observe_failure(A, 1.0, START);
    assert!(worker.is_troubled(A), "at once");
    (0..10).for_each(|_| worker.observe_success(A, START));
    settle(&mut worker);
    assert!(!worker.is_troubled(A), "any more");
}
