//! Rounds of batches, and what each batch came to.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tokio::time::sleep;

use super::proxy::{Proxy, Way};
use crate::body::Chat;
use crate::cpu::CpuTime;
use crate::load::{Client, Kind};

const CONCURRENCIES: [usize; 2] = [1, 16];

/// How long idleness is measured.
const IDLE: Duration = Duration::from_secs(2);

/// A kind of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Size {
    /// Without a body.
    Get,
    /// A chat of 4 KB.
    Post4,
    /// A chat of 128 KB.
    Post128,
}

/// What is measured on each way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Case {
    pub(super) size: Size,
    /// Requests under way at a time.
    pub(super) concurrency: usize,
}

/// What a batch came to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sample {
    /// Microseconds.
    pub(super) p50: f64,
    /// Microseconds.
    pub(super) p99: f64,
    /// Requests in a second.
    pub(super) rate: f64,
    /// CPU microseconds of a request in Envoy, without what it uses while idle.
    pub(super) envoy: f64,
    /// CPU microseconds of a request in the picker service.
    pub(super) service: f64,
}

/// CPU time used while no request is there, in cores.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Idle {
    pub(super) envoy: f64,
    pub(super) service: f64,
}

/// All samples of a round.
#[derive(Clone, Debug, Default)]
pub(super) struct Round(Vec<(Case, Way, Sample)>);

/// Clients before the proxy and an eye on the processes.
pub(super) struct Bench {
    clients: Vec<(Way, Client)>,
    envoy: u32,
    service: u32,
    requests: usize,
    idle: Idle,
}

impl Size {
    pub(super) const ALL: [Self; 3] = [Self::Get, Self::Post4, Self::Post128];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post4 => "POST 4 KB",
            Self::Post128 => "POST 128 KB",
        }
    }

    fn kind(self) -> Kind {
        match self {
            Self::Get => Kind::Get,
            Self::Post4 => Kind::Post(Chat::new(4 << 10)),
            Self::Post128 => Kind::Post(Chat::new(128 << 10)),
        }
    }
}

impl Case {
    /// All of them, in the order of the report.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        CONCURRENCIES.into_iter().flat_map(|concurrency| Size::ALL.map(|size| Self { size, concurrency }))
    }
}

impl Round {
    /// What a case came to on a way.
    pub(super) fn sample(&self, case: Case, way: Way) -> Sample {
        let found = self.0.iter().find(|(c, w, _)| (*c, *w) == (case, way));
        found.map(|(_, _, sample)| *sample).unwrap_or_default()
    }
}

impl Bench {
    /// Connects, and measures idleness.
    pub(super) async fn new(proxy: &Proxy, service: u32, requests: usize) -> Result<Self> {
        let connections = CONCURRENCIES.into_iter().max().unwrap_or(1);
        let mut clients = Vec::new();
        for way in Way::ALL {
            clients.push((way, Client::connect(proxy.address(way)?, connections).await?));
        }
        let envoy = proxy.pid();
        let begin = (CpuTime::of(envoy)?, CpuTime::of(service)?, Instant::now());
        sleep(IDLE).await;
        let cores = |used: CpuTime| used.total().as_secs_f64() / begin.2.elapsed().as_secs_f64();
        let idle =
            Idle { envoy: cores(CpuTime::of(envoy)? - begin.0), service: cores(CpuTime::of(service)? - begin.1) };
        Ok(Self { clients, envoy, service, requests, idle })
    }

    /// CPU time used while no request is there.
    pub(super) fn idle(&self) -> Idle {
        self.idle
    }

    /// Measures every case on every way once, in random order.
    pub(super) async fn round(&mut self) -> Result<Round> {
        let mut cases: Vec<_> = Case::all().collect();
        fastrand::shuffle(&mut cases);
        let mut round = Round::default();
        for case in cases {
            let kind = case.size.kind();
            let mut ways = Way::ALL;
            fastrand::shuffle(&mut ways);
            for way in ways {
                let sample = self.sample(case, &kind, way).await;
                round.0.push((case, way, sample.with_context(|| format!("{case:?} on {way:?}"))?));
            }
        }
        Ok(round)
    }

    async fn sample(&mut self, case: Case, kind: &Kind, way: Way) -> Result<Sample> {
        let (_, client) = self.clients.iter_mut().find(|(w, _)| *w == way).context("no client")?;
        // Opens connections and fills caches.
        client.run(kind, case.concurrency, self.requests.div_ceil(8)).await?;
        let (envoy, service) = (CpuTime::of(self.envoy)?, CpuTime::of(self.service)?);
        let batch = client.run(kind, case.concurrency, self.requests).await?;
        let (envoy, service) = (CpuTime::of(self.envoy)? - envoy, CpuTime::of(self.service)? - service);
        let took = batch.took.as_secs_f64();
        let per_request =
            |used: CpuTime, idle: f64| (used.total().as_secs_f64() - idle * took) * 1e6 / batch.requests();
        Ok(Sample {
            p50: batch.latency(0.5),
            p99: batch.latency(0.99),
            rate: batch.requests() / took,
            envoy: per_request(envoy, self.idle.envoy),
            service: per_request(service, self.idle.service),
        })
    }
}
