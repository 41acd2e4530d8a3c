//! A fleet whose members are found.

use std::collections::BTreeMap;

use super::*;
use crate::fleet::{Discovery, Fault, Listed, Membership};

fn discovery() -> Discovery {
    Discovery {
        cluster: "model_servers".into(),
        admin_cluster: "admin".into(),
        interval: Duration::from_secs(1),
        metrics_path: "/prometheus".into(),
        spec: targets(1).remove(0).spec,
        labels: BTreeMap::from([("role".into(), "decode".into())]),
    }
}

fn clusters(members: &[(&str, &str)]) -> String {
    let host = |(ip, status): &(&str, &str)| {
        let address = format!(r#"{{"socket_address":{{"address":"{ip}","port_value":8000}}}}"#);
        format!(r#"{{"address":{address},"health_status":{{"eds_health_status":"{status}"}}}}"#)
    };
    let hosts: Vec<_> = members.iter().map(host).collect();
    format!(r#"{{"cluster_statuses":[{{"name":"model_servers","host_statuses":[{}]}}]}}"#, hosts.join(","))
}

fn healthy(ips: &[&str]) -> String {
    clusters(&ips.iter().map(|ip| (*ip, "HEALTHY")).collect::<Vec<_>>())
}

/// A collector and the time.
struct Found {
    collector: Collector,
    store: Memory,
    now: u64,
    calls: u32,
}

impl Found {
    fn beside(written: usize) -> Self {
        let collector = Collector::new(targets(written), &scrape(), 9, at(0)).finding(Some(discovery()), at(0));
        Self { collector, store: Memory::default(), now: 0, calls: 1000 }
    }

    fn asks(&mut self) {
        assert!(self.collector.ask_members(at(self.now)).is_some());
        self.calls += 1;
        self.collector.asked_members(self.calls);
        assert!(self.collector.expects_members(self.calls));
    }

    /// A second later the admin interface answers with this.
    fn is_told(&mut self, answer: Answer<'_>) -> Listed {
        self.now += 1_000;
        self.asks();
        self.collector.members_answered(answer, at(self.now))
    }

    fn hears(&mut self, clusters: &str) -> Listed {
        self.is_told(whole(clusters.as_bytes()))
    }

    /// Every endpoint is scraped once.
    fn is_scraped(&mut self) {
        for endpoint in 0..self.collector.health().count() {
            self.calls += 1;
            self.collector.started(endpoint, self.calls, at(self.now));
            assert_eq!(self.collector.answered(self.calls, whole(TEXT), at(self.now)).unwrap().endpoint, endpoint);
        }
    }

    fn published(&mut self) -> Option<Snapshot> {
        self.collector.publish(&self.store, KEY, &mut lease(0)).then(|| read(&self.store))
    }

    fn addresses(&self) -> Vec<String> {
        let targets = (0..).map_while(|at| self.collector.target(at));
        targets.map(|target| target.address.to_string()).collect()
    }
}

fn changed(came: usize, went: usize) -> Listed {
    Listed::Changed { came, went, left_out: 0 }
}

#[test]
fn nothing_is_published_before_the_members_are_known() {
    let mut found = Found::beside(0);
    assert_eq!(found.published(), None);
    assert_eq!(found.hears(&healthy(&["10.1.0.2", "10.1.0.1"])), changed(2, 0));
    let snapshot = found.published().unwrap();
    let endpoints: Vec<_> = snapshot.endpoints.iter().map(|e| (&*e.address, e.membership, e.joined)).collect();
    let listed = |address| (address, Membership::Listed, Timestamp(0));
    assert_eq!(endpoints, [listed("10.1.0.1:8000"), listed("10.1.0.2:8000")], "there from the beginning");
    let target = found.collector.target(0).unwrap();
    assert_eq!((&*target.metrics_path, &*target.labels["role"]), ("/prometheus", "decode"));
}

#[test]
fn members_join_and_leave_and_the_others_stay_who_they_are() {
    let mut found = Found::beside(0);
    found.hears(&healthy(&["10.1.0.1", "10.1.0.3"]));
    found.is_scraped();
    let before = found.published().unwrap();

    assert_eq!(found.hears(&healthy(&["10.1.0.2", "10.1.0.3"])), changed(1, 1));
    let after = found.published().unwrap();
    let [old, newcomer] = &after.endpoints[..] else { panic!("{after:?}") };
    assert_eq!(*old, before.endpoints[1], "health, signals and identity");
    assert_eq!(
        (&*newcomer.address, newcomer.joined, newcomer.health),
        ("10.1.0.2:8000", at(found.now), Health::Assumed)
    );
    assert!(after.version > before.version);

    // It may be another process at the same address by now.
    found.hears(&healthy(&["10.1.0.1", "10.1.0.2", "10.1.0.3"]));
    let back = &found.published().unwrap().endpoints[2];
    assert_ne!(back.id(), before.endpoints[0].id());
    assert_eq!(back.joined, at(found.now));
}

#[test]
fn newcomers_are_scraped_and_those_that_left_are_not() {
    let mut found = Found::beside(1);
    found.hears(&healthy(&["10.1.0.1", "10.1.0.2"]));
    found.calls += 1;
    found.collector.started(1, found.calls, at(found.now));
    let gone = found.calls;
    found.hears(&healthy(&["10.1.0.2", "10.1.0.3"]));
    assert!(found.collector.answered(gone, whole(TEXT), at(found.now)).is_none());

    let mut due = Vec::new();
    for now in (0..200).step_by(20) {
        due.extend(found.collector.due(at(found.now + now)).into_iter().map(|(_, target)| target.address.to_string()));
    }
    due.sort();
    due.dedup();
    assert_eq!(due, ["10.0.0.1:8000", "10.1.0.2:8000", "10.1.0.3:8000"]);
}

#[test]
fn what_envoy_says_of_a_member_is_published() {
    let mut found = Found::beside(0);
    found.hears(&clusters(&[("10.1.0.1", "HEALTHY"), ("10.1.0.2", "HEALTHY")]));
    found.is_scraped();
    found.published();
    let told = clusters(&[("10.1.0.1", "DRAINING"), ("10.1.0.2", "UNHEALTHY")]);
    assert_eq!(found.hears(&told), changed(0, 0));
    let endpoints = found.published().unwrap().endpoints;
    assert_eq!(endpoints[0].membership, Membership::Draining);
    assert_eq!((endpoints[1].health, endpoints[1].believed()), (Health::Serving, Health::Unreachable));
    assert_eq!(found.collector.health().filter(|health| *health == Health::Unreachable).count(), 1);
    assert_eq!(found.hears(&(told + " ")), Listed::Same, "other bytes, the same members");
    assert_eq!(found.published(), None);
}

#[test]
fn a_written_endpoint_stays_and_keeps_its_settings() {
    let mut found = Found::beside(2);
    assert!(found.published().is_some(), "it need not wait");
    let told = clusters(&[("10.0.0.2", "DRAINING"), ("10.1.0.1", "HEALTHY")]);
    assert_eq!(found.hears(&told), changed(1, 0));
    assert_eq!(found.addresses(), ["10.0.0.1:8000", "10.0.0.2:8000", "10.1.0.1:8000"]);
    assert_eq!(found.collector.target(1).unwrap().metrics_path, "/metrics");
    let endpoints = found.published().unwrap().endpoints;
    let memberships: Vec<_> = endpoints.iter().map(|endpoint| endpoint.membership).collect();
    assert_eq!(memberships, [Membership::Unlisted, Membership::Draining, Membership::Listed]);
}

#[test]
fn an_answer_that_cannot_be_used_leaves_the_list_as_it_was() {
    let mut found = Found::beside(0);
    let good = healthy(&["10.1.0.1", "10.1.0.2"]);
    found.hears(&good);
    found.published();
    let before = found.addresses();
    let cut = &good.as_bytes()[..good.len() - 3];
    for (answer, fault) in [
        (whole(cut), Fault::NotClusters),
        (whole(b""), Fault::NotClusters),
        (whole(b"<html>"), Fault::NotClusters),
        (whole(br#"{"cluster_statuses":[{"name":"others"}]}"#), Fault::NoSuchCluster),
        (Answer { complete: false, ..whole(good.as_bytes()) }, Fault::TooLong),
        (failed(503), Fault::Status(Some(503))),
        (failed(404), Fault::Status(Some(404))),
        (Answer { status: None, ..whole(b"") }, Fault::Status(None)),
    ] {
        assert_eq!(found.is_told(answer), Listed::Unusable(fault));
        assert_eq!((found.addresses(), found.published()), (before.clone(), None));
    }
    assert_eq!(found.hears(&good), Listed::Same);
}

#[test]
fn a_pool_is_emptied_only_when_two_answers_in_a_row_say_so() {
    let mut found = Found::beside(0);
    let good = healthy(&["10.1.0.1"]);
    found.hears(&good);
    found.published();
    assert_eq!(found.hears(&healthy(&[])), Listed::Same);
    assert_eq!(found.hears(&good), Listed::Same);
    assert_eq!(found.hears(&healthy(&[])), Listed::Same, "not in a row");
    assert_eq!(found.addresses().len(), 1);
    assert_eq!(found.hears(&healthy(&[])), changed(0, 1));
    assert_eq!(found.published().unwrap().endpoints, []);
}

#[test]
fn the_proxy_is_asked_once_an_interval_and_a_late_answer_is_none() {
    let mut found = Found::beside(0);
    found.asks();
    let late = found.calls;
    assert!((20..1_000).step_by(20).all(|now| found.collector.ask_members(at(now)).is_none()));
    found.now = 1_000;
    found.asks();
    assert!(!found.collector.expects_members(late));
    // The clock steps back by an hour.
    let mut found = Found::beside(0);
    found.now = 3_600_000;
    found.asks();
    found.now = 0;
    found.asks();
    assert!(found.collector.ask_members(at(20)).is_none());
}

#[test]
fn the_next_holder_goes_on_from_the_members_known() {
    let mut found = Found::beside(1);
    found.hears(&clusters(&[("10.1.0.1", "HEALTHY"), ("10.1.0.2", "DRAINING")]));
    found.is_scraped();
    let before = found.published().unwrap();

    let mut next = Found { store: found.store, now: found.now, ..Found::beside(1) };
    next.collector.inherit(before.clone(), at(next.now));
    let inherited = next.published().unwrap();
    assert_eq!(inherited.endpoints, before.endpoints);
    assert_eq!(next.hears(&healthy(&["10.1.0.1", "10.1.0.2", "10.1.0.3"])), changed(1, 0));
    assert_eq!(next.published().unwrap().endpoints[3].joined, at(next.now), "new to a fleet that was there");

    let mut without = Collector::new(targets(1), &scrape(), 9, at(0));
    without.inherit(before, at(0));
    assert_eq!(without.health().count(), 1, "it goes by its own configuration");
}

#[test]
fn of_too_many_the_first_take_part_after_those_written() {
    let mut found = Found::beside(3);
    let ips: Vec<_> = (0..1100).map(|n| format!("10.2.{}.{}", n / 250, n % 250)).collect();
    let listed = found.hears(&healthy(&ips.iter().map(String::as_str).collect::<Vec<_>>()));
    assert_eq!(listed, Listed::Changed { came: 1021, went: 0, left_out: 79 });
    assert_eq!(found.addresses().len(), 1024);
    assert_eq!(found.published().unwrap().endpoints.len(), 1024);
}
