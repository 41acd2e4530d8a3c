//! Carries out what the collector wants: calls out, books answers, publishes.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use log::{info, warn};
use proxy_wasm::hostcalls;

use super::abi::{self, Buffer, Headers, SharedData};
use super::metrics::Metrics;
use super::surveyor::Surveyor;
use super::{Keys, number, random};
use crate::clock::Timestamp;
use crate::config::Config;
use crate::fleet::{
    Answer, Booked, Claim, Collector, Fault, Health, Lease, Listed, Member, Snapshot, Target, fingerprint,
};
use crate::store::{Found, Store};

/// Names the endpoint to the scrape cluster, which goes to the address in this header and nowhere else.
const SCRAPE_DESTINATION: &str = "x-endpoint-picker-scrape-destination";

/// The proxy refuses every scrape or none, so one line a minute tells it.
const BETWEEN_COMPLAINTS: Duration = Duration::from_secs(60);

/// A member of those that may scrape a pool.
#[derive(Debug)]
pub(super) struct Scraper {
    config: Rc<Config>,
    metrics: Rc<RefCell<Metrics>>,
    keys: Keys,
    member: Member,
    // Only the holder of the lease has one.
    collector: Option<Collector>,
    complained: Option<Timestamp>,
    /// Of the members.
    missed: Option<Timestamp>,
    surveyor: Surveyor,
}

impl Scraper {
    pub(super) fn new(config: Rc<Config>, metrics: Rc<RefCell<Metrics>>, by_right: bool, now: Timestamp) -> Self {
        let keys = Keys::of(&config.pool.name);
        let configuration = fingerprint(&config.pool.endpoints, &config.scrape, config.pool.discovery.as_ref());
        let member = Member { id: random(), by_right, since: now, configuration };
        let surveyor = Surveyor::new(now);
        Self { config, metrics, keys, member, collector: None, complained: None, missed: None, surveyor }
    }

    /// The lease as it lies in shared data, and the token to replace it.
    pub(super) fn lease(&self) -> (Option<Lease>, u32) {
        let Found { value, cas } = SharedData.get(&self.keys.lease);
        (value.and_then(|value| Lease::decode(&self.keys.lease, &value)), cas)
    }

    /// Renews or takes the lease, found as `current` with `cas`, and scrapes if it is held.
    pub(super) fn tick(&mut self, current: Option<&Lease>, cas: u32, now: Timestamp) {
        let metrics = self.metrics.clone();
        let metrics = &mut metrics.borrow_mut();
        let Claim::Hold(mut lease) = Lease::claim(current, self.member, now) else {
            self.collector = None;
            return;
        };
        let Some(collector) = &mut self.collector else {
            // Others may claim it in the same moment; who writes it down first has it.
            if SharedData.set(&self.keys.lease, &lease.encode(&self.keys.lease), cas) {
                self.take_over(current, metrics, now);
                self.scrape(metrics, now);
            }
            return;
        };
        for booked in collector.expire(now) {
            report(collector.target(booked.endpoint), &booked, metrics);
        }
        let published = collector.publish(&SharedData, &self.keys.snapshot, &mut lease);
        if published || self.surveyor.is_due(now) {
            self.surveyor.survey(&self.config, self.member.id, collector, metrics, now);
        }
        // If somebody else was faster, the next tick shows who holds it.
        SharedData.set(&self.keys.lease, &lease.encode(&self.keys.lease), cas);
        self.scrape(metrics, now);
    }

    /// Books the answer to a call, if it is ours.
    pub(super) fn answered(&mut self, call: u32, body_size: usize) {
        let Some(collector) = &mut self.collector else { return };
        let lists = collector.expects_members(call);
        if !lists && !collector.expects(call) {
            return;
        }
        let status = abi::header(Headers::CallResponse, ":status");
        let body =
            abi::buffer(Buffer::CallResponseBody, self.config.scrape.max_text_bytes.min(body_size)).unwrap_or_default();
        let answer = Answer {
            status: status.as_deref().and_then(number),
            // A list that was cut is no JSON.
            complete: body.len() == body_size && (lists || is_complete(&body)),
            body: &body,
        };
        if lists {
            let listed = collector.members_answered(answer, abi::now());
            let metrics = self.metrics.clone();
            return self.listed(listed, &mut metrics.borrow_mut(), abi::now());
        }
        if let Some(booked) = collector.answered(call, answer, abi::now()) {
            report(collector.target(booked.endpoint), &booked, &mut self.metrics.borrow_mut());
        }
    }

    /// Takes in what the proxy says of the members.
    fn listed(&mut self, listed: Listed, metrics: &mut Metrics, now: Timestamp) {
        let (name, Some(discovery)) = (&self.config.pool.name, &self.config.pool.discovery) else { return };
        let cluster = &discovery.cluster;
        match listed {
            Listed::Same => {}
            Listed::Changed { came, went, left_out } => {
                info!("pool {name}: of cluster \"{cluster}\" {came} joined, {went} left, {left_out} are too many");
            }
            Listed::Unusable(fault) => {
                metrics.discovery_failed();
                if may_complain(&mut self.missed, now) {
                    warn!("pool {name}: the members of cluster \"{cluster}\" stay as they were: {fault:?}");
                }
            }
        }
    }

    fn take_over(&mut self, current: Option<&Lease>, metrics: &mut Metrics, now: Timestamp) {
        let Config { pool, scrape, .. } = &*self.config;
        let mut collector =
            Collector::new(pool.endpoints.clone(), scrape, random(), now).finding(pool.discovery.clone(), now);
        let value = SharedData.get(&self.keys.snapshot).value;
        if let Some(previous) = value.and_then(|value| Snapshot::decode(&self.keys.snapshot, &value)) {
            collector.inherit(previous, now);
        }
        let silent = |lease: &Lease| lease.holder != self.member.id && lease.has_expired(now);
        if current.is_some_and(silent) && !self.member.by_right {
            metrics.took_over();
            warn!("pool {}: the scraper has been silent for a second; this worker scrapes now", pool.name);
        } else {
            info!("pool {}: scraping {} endpoints here", pool.name, collector.endpoints().len());
        }
        self.collector = Some(collector);
    }

    fn ask_members(&mut self, metrics: &mut Metrics, now: Timestamp) {
        let Some(collector) = &mut self.collector else { return };
        let Some(discovery) = collector.ask_members(now) else { return };
        let path = discovery.path();
        let headers = vec![
            (":method", "GET"),
            (":scheme", "http"),
            (":path", &*path),
            (":authority", &*discovery.admin_cluster),
            ("accept", "application/json"),
        ];
        let cluster = &discovery.admin_cluster;
        match hostcalls::dispatch_http_call(cluster, headers, None, Vec::new(), discovery.timeout()) {
            Ok(call) => collector.asked_members(call),
            Err(_) => self.listed(Listed::Unusable(Fault::NotSent), metrics, now),
        }
    }

    fn scrape(&mut self, metrics: &mut Metrics, now: Timestamp) {
        self.ask_members(metrics, now);
        let Some(collector) = &mut self.collector else { return };
        let timeout = collector.timeout();
        let calls: Vec<_> = collector
            .due(now)
            .into_iter()
            .map(|(endpoint, target)| {
                let address = target.address.to_string();
                let headers = vec![
                    (":method", "GET"),
                    (":scheme", "http"),
                    (":path", &*target.metrics_path),
                    (":authority", &address),
                    (SCRAPE_DESTINATION, &address),
                    ("accept", "text/plain;version=0.0.4"),
                ];
                (
                    endpoint,
                    hostcalls::dispatch_http_call(&self.config.scrape.cluster, headers, None, Vec::new(), timeout),
                )
            })
            .collect();
        for (endpoint, call) in calls {
            match call {
                Ok(call) => collector.started(endpoint, call, now),
                Err(status) => {
                    let booked = collector.refused(endpoint, now);
                    report(collector.target(endpoint), &booked, metrics);
                    if may_complain(&mut self.complained, now) {
                        let cluster = &self.config.scrape.cluster;
                        warn!(
                            "the proxy will not send scrapes: is there a cluster named \"{cluster}\" with \
                             use_http_header? ({status:?})"
                        );
                    }
                }
            }
        }
    }
}

/// A body of the declared length; one without a length is trusted if the proxy saw its chunked end, or if it ends as
/// every exposition does.
fn is_complete(body: &[u8]) -> bool {
    match abi::header(Headers::CallResponse, "content-length") {
        Some(length) => number::<usize>(&length) == Some(body.len()),
        None => body.ends_with(b"\n") || abi::header(Headers::CallResponse, "transfer-encoding").is_some(),
    }
}

/// Whether a fault was last told long enough ago to be told again.
fn may_complain(complained: &mut Option<Timestamp>, now: Timestamp) -> bool {
    let recent = complained.is_some_and(|at| at <= now && now.since(at) < BETWEEN_COMPLAINTS);
    if !recent {
        *complained = Some(now);
    }
    !recent
}

fn report(target: Option<&Target>, booked: &Booked, metrics: &mut Metrics) {
    metrics.scraped(&booked.outcome);
    let (Some(health), Some(target)) = (booked.turned, target) else { return };
    match health {
        Health::Serving => info!("{} serves", target.address),
        Health::Assumed => warn!("{}{} has no metrics: {:?}", target.address, target.metrics_path, booked.outcome),
        Health::Unreachable => warn!("{} is unreachable: {:?}", target.address, booked.outcome),
    }
}
