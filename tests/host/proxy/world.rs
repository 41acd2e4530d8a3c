//! What all VMs of a proxy share: clock, shared data, statistics, log, and the servers outside.

use std::collections::BTreeMap;
use std::sync::Arc;

use proxy_wasm::types::{LogLevel, MetricType, Status};

use super::headers::Headers;
use super::host::Host;
use super::server::{Answer, Server};
use super::shared_data::SharedData;
use super::vm::Vm;

/// Which of a proxy's VMs.
pub type VmId = usize;

/// The proxy outside its VMs.
pub struct World {
    pub host: Host,
    /// Milliseconds by which timers run.
    pub now: u64,
    /// What the wall clock was set forward since, in milliseconds; back if negative.
    pub clock_set: i64,
    pub shared: SharedData,
    pub metrics: Vec<Metric>,
    pub logs: Vec<(LogLevel, String)>,
    /// What the operator wants to see.
    pub logs_from: LogLevel,
    pub servers: BTreeMap<String, Server>,
    /// Clusters that lead to one server whatever the call says, by name.
    pub clusters: BTreeMap<String, Server>,
    pub calls: Vec<Call>,
    pub ticks: Vec<Tick>,
    pub faults: Faults,
}

/// A metric and its value.
#[derive(Debug)]
pub struct Metric {
    pub name: String,
    pub kind: MetricType,
    pub value: u64,
}

/// Statuses with which host calls fail, until a test takes them back.
#[derive(Default)]
pub struct Faults {
    /// Of every write of shared data.
    pub write: Option<Status>,
    /// Of every call out.
    pub call: Option<Status>,
    /// Of every change of request headers.
    pub change: Option<Status>,
    /// Of every change of a body.
    pub body: Option<Status>,
    /// A read of this key gives the first half of the value and zeros for the rest.
    pub torn: Option<Vec<u8>>,
    /// Another VM's root context whose timer fires just before the next write of shared data by another.
    pub interrupt: Option<(Arc<Vm>, u32)>,
}

/// A call out, which is a scrape unless it goes to a cluster of one server.
#[derive(Clone, Debug)]
pub struct Call {
    pub vm: VmId,
    pub root: u32,
    pub cluster: String,
    pub headers: Headers,
    /// When it began.
    pub began: u64,
    /// When its callback came or its deadline passed.
    pub ended: Option<u64>,
    due: u64,
    answer: Option<Answer>,
}

/// The timer of a root context.
#[derive(Debug)]
pub struct Tick {
    vm: VmId,
    root: u32,
    period: u64,
    next: u64,
}

/// What happens next.
pub enum Event {
    Tick(VmId, u32),
    Answer(VmId, u32, u32, Answer),
}

/// The header that names the server to the cluster of the scrapes.
pub const SCRAPE_DESTINATION: &str = "x-endpoint-picker-scrape-destination";

impl World {
    pub fn new(host: Host) -> Self {
        Self {
            host,
            now: 1_796_000_000_000,
            clock_set: 0,
            logs_from: LogLevel::Info,
            shared: SharedData::default(),
            metrics: Vec::new(),
            logs: Vec::new(),
            servers: BTreeMap::new(),
            clusters: BTreeMap::new(),
            calls: Vec::new(),
            ticks: Vec::new(),
            faults: Faults::default(),
        }
    }

    /// Takes a call out; its token is its number.
    pub fn call(
        &mut self,
        vm: VmId,
        root: u32,
        cluster: String,
        headers: Headers,
        timeout: u64,
    ) -> Result<u32, Status> {
        if let Some(status) = self.faults.call {
            return Err(status);
        }
        let server = match self.clusters.get(&cluster) {
            Some(server) => server,
            None => {
                let address = headers.get(SCRAPE_DESTINATION).and_then(|address| String::from_utf8(address).ok());
                let address = address.filter(|address| address.parse::<std::net::SocketAddr>().is_ok());
                let address = address.ok_or(Status::InternalFailure)?;
                self.servers.get(&address).unwrap_or(&Server::Refuses)
            }
        };
        let scraped = server.scraped(self.host, timeout);
        let (after, answer) = scraped.map_or((timeout, None), |(after, answer)| (after, Some(answer)));
        let (began, due) = (self.now, self.now + after.min(timeout));
        self.calls.push(Call { vm, root, cluster, headers, began, ended: None, due, answer });
        Ok(u32::try_from(self.calls.len() - 1).unwrap())
    }

    /// Ticks of one VM's root context; the VMs of a proxy do not tick in step.
    pub fn tick_every(&mut self, vm: VmId, root: u32, period: u64) {
        self.ticks.retain(|tick| (tick.vm, tick.root) != (vm, root));
        let next = self.now + period + (vm as u64 * 7) % period.max(1);
        self.ticks.push(Tick { vm, root, period, next });
    }

    /// The timers of a VM do not fire for some milliseconds.
    pub fn stall(&mut self, vm: VmId, span: u64) {
        let end = self.now + span;
        self.ticks.iter_mut().filter(|tick| tick.vm == vm).for_each(|tick| tick.next = tick.next.max(end));
    }

    /// Forgets the timers and calls of a VM that is no more.
    pub fn bury(&mut self, vm: VmId) {
        self.ticks.retain(|tick| tick.vm != vm);
        for call in self.calls.iter_mut().filter(|call| call.vm == vm) {
            call.ended.get_or_insert(self.now);
        }
    }

    /// Moves the clock to the next event at or before `end`.
    pub fn next_event(&mut self, end: u64) -> Option<Event> {
        let call = self.calls.iter_mut().enumerate().filter(|(_, call)| call.ended.is_none());
        let call = call.min_by_key(|(_, call)| call.due).filter(|(_, call)| call.due <= end);
        let tick = self.ticks.iter_mut().min_by_key(|tick| tick.next).filter(|tick| tick.next <= end);
        match (call, tick) {
            (Some((token, call)), tick) if tick.as_ref().is_none_or(|tick| call.due <= tick.next) => {
                self.now = self.now.max(call.due);
                call.ended = Some(self.now);
                match call.answer.clone() {
                    Some(answer) => Some(Event::Answer(call.vm, call.root, u32::try_from(token).unwrap(), answer)),
                    None => self.next_event(end),
                }
            }
            (_, Some(tick)) => {
                self.now = self.now.max(tick.next);
                tick.next = self.now + tick.period;
                Some(Event::Tick(tick.vm, tick.root))
            }
            _ => None,
        }
    }

    /// Defines a metric or finds the one of that name.
    pub fn metric(&mut self, kind: MetricType, name: &str) -> u32 {
        let found = self.metrics.iter().position(|metric| metric.name == name);
        let id = found.unwrap_or_else(|| {
            self.metrics.push(Metric { name: name.into(), kind, value: 0 });
            self.metrics.len() - 1
        });
        u32::try_from(id).unwrap()
    }
}
