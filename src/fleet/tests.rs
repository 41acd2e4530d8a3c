//! What the collector makes of the answers.

mod discovery;
mod one_thread;

use super::*;
use crate::clock::Timestamp;
use crate::schedule::Candidate;
use crate::scrape::Settings;
use crate::scrape::{EngineSpec, Reading};
use crate::store::{Memory, Store};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const KEY: &[u8] = b"snapshot";
const TEXT: &[u8] = b"vllm:num_requests_waiting 3\n";

fn targets(n: usize) -> Vec<Target> {
    let spec = Arc::new(EngineSpec::auto());
    let target = |n: usize| Target {
        address: format!("10.0.{}.{}:8000", n / 250, n % 250 + 1).parse().unwrap(),
        metrics_path: "/metrics".into(),
        spec: spec.clone(),
        draining: false,
        labels: BTreeMap::new(),
    };
    (0..n).map(target).collect()
}

/// The defaults of the configuration.
fn scrape() -> Settings {
    Settings {
        interval: Duration::from_millis(100),
        stale_after: Duration::from_secs(2),
        unhealthy_after: 3,
        cluster: "c".into(),
        max_text_bytes: 1 << 20,
    }
}

fn at(ms: u64) -> Timestamp {
    Timestamp(1_000_000 + ms)
}

fn whole(body: &[u8]) -> Answer<'_> {
    Answer { status: Some(200), complete: true, body }
}

fn failed(status: u16) -> Answer<'static> {
    Answer { status: Some(status), complete: true, body: b"" }
}

/// One server, asked every 100 ms.
struct One {
    collector: Collector,
    now: u64,
    calls: u32,
}

impl One {
    fn new() -> Self {
        Self { collector: Collector::new(targets(1), &scrape(), 9, at(0)), now: 0, calls: 0 }
    }

    /// `times` scrapes end with this. What was worth reporting.
    fn answers(&mut self, answer: Answer<'_>, times: usize) -> Vec<Health> {
        let scrape = |_| {
            self.now += 100;
            self.calls += 1;
            self.collector.started(0, self.calls, at(self.now));
            self.collector.answered(self.calls, answer, at(self.now)).unwrap().turned
        };
        (0..times).filter_map(scrape).collect()
    }

    /// The host never answers; milliseconds until it counts as unreachable.
    fn hangs(&mut self) -> u64 {
        let began = self.now;
        while self.health() != Health::Unreachable {
            if !self.collector.due(at(self.now)).is_empty() {
                self.calls += 1;
                self.collector.started(0, self.calls, at(self.now));
            }
            self.now += 20;
            self.collector.expire(at(self.now));
        }
        self.now - began
    }

    fn health(&self) -> Health {
        self.collector.health().next().unwrap()
    }

    /// What everyone is told.
    fn snapshot(&mut self, store: &Memory) -> Snapshot {
        assert!(self.collector.publish(store, KEY, &mut lease(0)));
        read(store)
    }
}

fn lease(snapshot: u64) -> Lease {
    Lease { holder: 1, by_right: false, since: at(0), configuration: 7, until: at(0), snapshot }
}

fn read(store: &Memory) -> Snapshot {
    Snapshot::decode(KEY, &store.get(KEY).value.unwrap()).unwrap()
}

#[test]
fn a_busy_server_is_not_dead_before_its_signals_are_stale() {
    let mut one = One::new();
    one.answers(whole(TEXT), 1);
    let dead_after = one.hangs();
    assert!((2_000..3_500).contains(&dead_after), "{dead_after} ms");
}

#[test]
fn the_proxys_own_timeout_is_no_failure() {
    for timeout in [failed(504), Answer { status: None, ..failed(0) }] {
        let mut one = One::new();
        one.answers(whole(TEXT), 1);
        one.answers(timeout, 19);
        assert_eq!(one.health(), Health::Serving);
        one.answers(timeout, 1);
        assert_eq!(one.health(), Health::Unreachable, "two seconds without contact");
    }
}

#[test]
fn any_contact_ends_the_silence() {
    for contact in [whole(TEXT), failed(404), Answer { complete: false, ..whole(TEXT) }] {
        let mut one = One::new();
        for _ in 0..10 {
            one.answers(failed(504), 15);
            one.answers(contact, 1);
        }
        assert_ne!(one.health(), Health::Unreachable);
    }
}

#[test]
fn a_pause_of_the_scraper_is_not_silence_of_the_server() {
    let mut one = One::new();
    one.answers(whole(TEXT), 1);
    one.now += 3_600_000;
    one.answers(failed(504), 1);
    assert_eq!(one.health(), Health::Serving);
}

#[test]
fn failures_count_only_in_a_row() {
    for status in [500, 503] {
        let mut one = One::new();
        for _ in 0..5 {
            one.answers(failed(status), 2);
            assert_ne!(one.health(), Health::Unreachable);
            one.answers(whole(TEXT), 1);
        }
        one.answers(failed(status), 3);
        assert_eq!(one.health(), Health::Unreachable);
    }
}

#[test]
fn an_answer_that_came_after_its_deadline_is_used() {
    let mut one = One::new();
    one.collector.started(0, 1, at(0));
    let expired = (0..=1_000).step_by(20).flat_map(|ms| one.collector.expire(at(ms))).count();
    assert_eq!(expired, 1);
    assert!(one.collector.answered(1, failed(504), at(1_010)).is_none(), "it has been counted");

    one.collector.started(0, 2, at(1_020));
    assert_eq!((1_020..=2_020).step_by(20).flat_map(|ms| one.collector.expire(at(ms))).count(), 1);
    one.collector.started(0, 3, at(2_030));
    assert_eq!(one.collector.answered(2, whole(TEXT), at(2_040)).unwrap().outcome, Outcome::Read);
    assert_eq!(one.health(), Health::Serving);
    assert_eq!(one.collector.answered(3, whole(TEXT), at(2_050)).unwrap().outcome, Outcome::Read);
}

#[test]
fn a_scrape_that_the_proxy_does_not_send_says_nothing_of_the_server() {
    let mut one = One::new();
    one.answers(whole(TEXT), 1);
    for ms in (0..60_000).step_by(100) {
        let booked = one.collector.refused(0, at(ms));
        assert_eq!((booked.outcome, booked.turned), (Outcome::Refused, None));
    }
    assert_eq!(one.health(), Health::Serving);
}

#[test]
fn a_server_that_came_back_has_another_name() {
    let (store, mut one) = (Memory::default(), One::new());
    one.answers(whole(TEXT), 1);
    let before = one.snapshot(&store).endpoints[0].id();
    one.answers(failed(503), 3);
    assert_eq!(one.snapshot(&store).endpoints[0].id(), before, "not before it is back");

    one.answers(whole(TEXT), 1);
    let after = one.snapshot(&store).endpoints[0].id();
    assert_ne!(after, before);
    one.answers(whole(TEXT), 5);
    assert_eq!(one.snapshot(&store).endpoints[0].id(), after);
}

#[test]
fn a_server_that_was_taken_out_of_the_pool_and_put_back_has_another_name() {
    let mut pool = targets(2);
    let (store, both) = (Memory::default(), pool.clone());
    pool.truncate(1);
    let mut names = Vec::new();
    for targets in [both.clone(), pool, both] {
        let mut collector = Collector::new(targets, &scrape(), 9, at(0));
        if let Some(value) = store.get(KEY).value {
            collector.inherit(Snapshot::decode(KEY, &value).unwrap(), at(0));
        }
        assert!(collector.publish(&store, KEY, &mut lease(0)));
        names.push(read(&store).endpoints.iter().map(Endpoint::id).collect::<Vec<_>>());
    }
    assert_eq!(names[0][0], names[2][0]);
    assert_ne!(names[0][1], names[2][1]);
}

#[test]
fn who_comes_later_has_joined() {
    let store = Memory::default();
    let joined = |targets: Vec<Target>, now: u64| {
        let mut collector = Collector::new(targets, &scrape(), 9, at(now));
        if let Some(value) = store.get(KEY).value {
            collector.inherit(Snapshot::decode(KEY, &value).unwrap(), at(now));
        }
        assert!(collector.publish(&store, KEY, &mut lease(0)));
        read(&store).endpoints.iter().map(|endpoint| endpoint.joined).collect::<Vec<_>>()
    };
    assert_eq!(joined(targets(2), 1_000), [Timestamp(0); 2], "who is there from the beginning has not");
    assert_eq!(joined(targets(3), 60_000), [Timestamp(0), Timestamp(0), at(60_000)]);
    assert_eq!(joined(targets(3), 90_000), [Timestamp(0), Timestamp(0), at(60_000)], "and whoever scrapes knows it");
}

#[test]
fn who_comes_back_has_joined() {
    let (store, mut one) = (Memory::default(), One::new());
    one.answers(whole(TEXT), 1);
    assert_eq!(one.snapshot(&store).endpoints[0].joined, Timestamp(0));
    one.answers(failed(503), 3);
    one.answers(whole(TEXT), 1);
    assert!(one.snapshot(&store).endpoints[0].joined > Timestamp(0));
}

#[test]
fn who_takes_over_goes_on_from_what_was_known() {
    let (store, mut one) = (Memory::default(), One::new());
    one.answers(whole(TEXT), 1);
    one.answers(failed(503), 3);
    one.answers(whole(TEXT), 1);
    one.answers(failed(503), 3);
    let before = one.snapshot(&store);

    let mut next = One { collector: Collector::new(targets(1), &scrape(), 10, at(one.now)), ..one };
    next.collector.inherit(before.clone(), at(one.now));
    let after = next.snapshot(&store);
    assert_eq!(after.endpoints, before.endpoints);
    assert_eq!((after.seed, after.version), (before.seed, before.version + 1));
    assert_eq!(next.answers(failed(503), 1), [], "it has been reported");
    assert_eq!(next.answers(whole(TEXT), 1), [Health::Serving]);
}

#[test]
fn two_snapshots_never_have_one_version() {
    let (store, mut one) = (Memory::default(), One::new());
    let mut versions = vec![];
    for _ in 0..3 {
        one.answers(whole(TEXT), 1);
        // The snapshot was written, the lease was not: it still tells the version of long ago.
        let mut lease = lease(4);
        assert!(one.collector.publish(&store, KEY, &mut lease));
        assert_eq!(lease.snapshot, read(&store).version);
        versions.push(lease.snapshot);
    }
    assert_eq!(versions, [5, 6, 7]);
}

#[test]
fn news_are_told_although_the_lease_could_not_be_renewed_with_them() {
    let (store, mut one) = (Memory::default(), One::new());
    assert!(one.collector.publish(&store, KEY, &mut lease(0)));
    // The lease was not written; this is the next tick.
    let mut next = lease(0);
    assert!(!one.collector.publish(&store, KEY, &mut next), "nothing new");
    assert_eq!(next.snapshot, read(&store).version);
}

#[test]
fn news_that_could_not_be_written_are_written_later() {
    struct Full;
    impl Store for Full {
        fn get(&self, _: &[u8]) -> crate::store::Found {
            Default::default()
        }
        fn set(&self, _: &[u8], _: &[u8], _: u32) -> bool {
            false
        }
    }
    let mut one = One::new();
    let mut kept = lease(4);
    assert!(!one.collector.publish(&Full, KEY, &mut kept));
    assert_eq!(kept.snapshot, 4);
    assert!(one.collector.publish(&Memory::default(), KEY, &mut kept));
    assert_eq!(kept.snapshot, 5);
}

#[test]
fn a_snapshot_replaces_the_one_before() {
    let (store, mut one) = (Memory::default(), One::new());
    for _ in 0..3 {
        one.answers(whole(TEXT), 1);
        assert_eq!(one.snapshot(&store).endpoints[0].signals.waiting.as_ref().unwrap().at, at(one.now));
    }
}

#[test]
fn a_flapping_server_does_not_flood_the_log() {
    let cut = Answer { complete: false, ..whole(TEXT) };
    let mut one = One::new();
    let mut reports = Vec::new();
    for _ in 0..50 {
        reports.extend(one.answers(whole(TEXT), 1));
        reports.extend(one.answers(cut, 1));
    }
    assert_eq!(reports, [Health::Serving], "in the first 10 s");
    reports.extend(one.answers(cut, 10));
    assert_eq!(reports, [Health::Serving, Health::Assumed], "and then how it is");
}

#[test]
fn every_signal_goes_stale() {
    let mut endpoint = Endpoint::new("10.0.0.1:8000".parse().unwrap());
    let lora = Some(crate::scrape::Lora::default());
    let reading = Reading { waiting: Some(1), running: Some(2), kv_usage: Some(0.5), lora, ..Reading::default() };
    endpoint.signals.update(reading, at(0));
    let known = |ms| {
        let seen = Candidate::of(&endpoint, at(ms), scrape().stale_after);
        [seen.waiting.is_some(), seen.running.is_some(), seen.kv_usage.is_some(), seen.lora.is_some()]
    };
    assert_eq!(known(2_000), [true; 4]);
    assert_eq!(known(2_001), [false; 4]);
}

#[test]
fn configurations_that_scrape_alike_have_one_fingerprint() {
    let same = fingerprint(&targets(2), &scrape(), None);
    assert_eq!(fingerprint(&targets(2), &scrape(), None), same);
    let mut other = targets(2);
    other[1].metrics_path = "/m".into();
    assert_ne!(fingerprint(&other, &scrape(), None), same);
    let mut other = targets(2);
    other[1].spec = Arc::new(EngineSpec::builtin(crate::scrape::Engine::Tgi));
    assert_ne!(fingerprint(&other, &scrape(), None), same);
    assert_ne!(fingerprint(&targets(3), &scrape(), None), same);
    assert_ne!(fingerprint(&targets(2), &Settings { interval: Duration::from_secs(1), ..scrape() }, None), same);
}
