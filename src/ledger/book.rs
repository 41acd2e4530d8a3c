//! A page with a line for each endpoint.
//!
//! All amounts are integers, so that what was added can be taken away again to the last bit.

use crate::clock::Timestamp;
use crate::id::EndpointId;

/// A request's weight, fixed when it is sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Job {
    /// Where it goes.
    pub endpoint: EndpointId,
    /// Prompt tokens believed not to be cached there.
    pub uncached_tokens: u32,
    /// Tokens that each step of the engine reads for it: its prompt, and the answer expected.
    pub context_tokens: u32,
    /// Tokens it adds to the KV cache: of these, what is not there already.
    pub kv_tokens: u32,
    /// Time its uncached prompt is expected to take, in microseconds.
    pub prefill_micros: u32,
    /// How far it moves the clock of the endpoint's prefix cache on, in blocks / 65536.
    pub blocks: u64,
    /// Its answer comes token by token, so its first token will be seen. Else all tokens come at once in the end, and its
    /// prompt counts as read when the virtual clock says so.
    pub streams: bool,
}

/// What is in flight at one endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// Requests.
    pub requests: u32,
    /// Of these, those whose prompt is not read: no first token was seen, nor counts as come.
    pub prefilling: u32,
    /// Uncached prompt tokens of those.
    pub prefill_tokens: u32,
    /// Tokens that each step reads for all requests; a prefix that they share is read for each.
    pub context_tokens: u32,
    /// Tokens that they add to the KV cache; a prefix that they share is there once.
    pub kv_tokens: u32,
    /// Expected prefill time of those, in microseconds.
    pub prefill_micros: u64,
    /// The virtual clock: when the endpoint is expected to have read all prompts sent to it, in microseconds since the
    /// Unix epoch. A first token sets it right: what is still to be read starts then. Whatever else ends a prefill can
    /// only bring it forward.
    pub free_at_micros: u64,
    /// Blocks that the endpoint's prefix cache took in since it was first seen, in 1/65536. Never goes back.
    pub clock: u64,
}

/// Something that changes a line.
#[derive(Clone, Debug)]
pub(super) enum Event {
    /// A request was sent.
    Opened(Job, Timestamp),
    /// Its prompt has been read or never will be. True: its first token was seen.
    Started(Job, Timestamp, bool),
    /// It is gone, after `Started`.
    Closed(Job),
    /// A prefix cache had to take in more blocks than foreseen, in 1/65536.
    Aged(EndpointId, u64),
    /// These have left the pool, idle.
    Left(Vec<EndpointId>),
    /// A worker's part of the totals was the first and shall be the second.
    Restated(Book, Book, Timestamp),
    /// A worker's part of the totals goes.
    Removed(Book, Timestamp),
}

/// Lines by endpoint, in the order of their ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Book {
    lines: Vec<(EndpointId, Line)>,
}

/// In microseconds.
const HOUR: u64 = 3_600_000_000;

/// Bytes of a line: id, five 32-bit and three 64-bit amounts.
const LINE: usize = 52;

impl Book {
    /// The line of an endpoint; an empty one if nothing was sent there.
    pub fn line(&self, endpoint: EndpointId) -> Line {
        self.find(endpoint).ok().and_then(|at| self.lines.get(at)).map(|(_, line)| *line).unwrap_or_default()
    }

    /// All lines.
    pub fn lines(&self) -> impl Iterator<Item = (EndpointId, &Line)> {
        self.lines.iter().map(|(id, line)| (*id, line))
    }

    /// Endpoints that are not `known`, have nothing in flight, and got their last prompt an hour ago or longer. Those that
    /// are known only to a worker of another configuration are hardly ever idle for so long.
    pub(super) fn strangers(&self, known: &[EndpointId], now: Timestamp) -> Vec<EndpointId> {
        if self.lines.len() <= known.len() {
            return Vec::new();
        }
        let idle = |line: &Line| line.requests == 0 && line.free_at_micros.saturating_add(HOUR) < micros(now);
        let strangers = self.lines.iter().filter(|(id, line)| idle(line) && !known.contains(id));
        strangers.map(|(id, _)| *id).collect()
    }

    pub(super) fn apply(&mut self, event: &Event) {
        match event {
            Event::Opened(job, now) => self.with(job.endpoint, |line| line.open(job, *now)),
            Event::Started(job, now, seen) => self.with(job.endpoint, |line| line.start(job, *now, *seen)),
            Event::Closed(job) => self.with(job.endpoint, |line| line.close(job)),
            Event::Aged(endpoint, blocks) => {
                self.with(*endpoint, |line| line.clock = line.clock.wrapping_add(*blocks));
            }
            Event::Left(gone) => self.lines.retain(|(id, line)| line.requests > 0 || !gone.contains(id)),
            Event::Restated(was, is, now) => {
                self.remove(was, *now);
                is.lines.iter().for_each(|(id, other)| self.with(*id, |line| line.add(other)));
            }
            Event::Removed(book, now) => self.remove(book, *now),
        }
    }

    fn remove(&mut self, part: &Self, now: Timestamp) {
        part.lines.iter().for_each(|(id, other)| self.with(*id, |line| line.remove(other, now)));
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.lines.len() * LINE);
        for (EndpointId(id), line) in &self.lines {
            bytes.extend_from_slice(&id.to_le_bytes());
            for amount in [line.requests, line.prefilling, line.prefill_tokens, line.context_tokens, line.kv_tokens] {
                bytes.extend_from_slice(&amount.to_le_bytes());
            }
            for amount in [line.prefill_micros, line.free_at_micros, line.clock] {
                bytes.extend_from_slice(&amount.to_le_bytes());
            }
        }
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (lines, rest) = bytes.as_chunks::<LINE>();
        let read = |line: &[u8; LINE]| {
            let (id, rest) = line.split_first_chunk()?;
            let (narrow, wide) = rest.split_first_chunk::<20>()?;
            let (narrow, _) = narrow.as_chunks::<4>();
            let (wide, _) = wide.as_chunks::<8>();
            let [requests, prefilling, prefill_tokens, context_tokens, kv_tokens] = narrow else { return None };
            let [prefill_micros, free_at_micros, clock] = wide else { return None };
            let line = Line {
                requests: u32::from_le_bytes(*requests),
                prefilling: u32::from_le_bytes(*prefilling),
                prefill_tokens: u32::from_le_bytes(*prefill_tokens),
                context_tokens: u32::from_le_bytes(*context_tokens),
                kv_tokens: u32::from_le_bytes(*kv_tokens),
                prefill_micros: u64::from_le_bytes(*prefill_micros),
                free_at_micros: u64::from_le_bytes(*free_at_micros),
                clock: u64::from_le_bytes(*clock),
            };
            Some((EndpointId(u64::from_le_bytes(*id)), line))
        };
        let lines: Vec<_> = lines.iter().map(read).collect::<Option<_>>()?;
        let sorted = lines.is_sorted_by(|(a, _), (b, _)| a < b);
        (rest.is_empty() && sorted).then_some(Self { lines })
    }

    fn find(&self, endpoint: EndpointId) -> Result<usize, usize> {
        self.lines.binary_search_by_key(&endpoint, |(id, _)| *id)
    }

    fn with(&mut self, endpoint: EndpointId, change: impl FnOnce(&mut Line)) {
        let at = self.find(endpoint).unwrap_or_else(|at| {
            self.lines.insert(at, (endpoint, Line::default()));
            at
        });
        if let Some((_, line)) = self.lines.get_mut(at) {
            change(line);
        }
    }
}

impl Line {
    /// How long until the endpoint has read all prompts sent to it, in seconds. No longer than it takes to read them, even
    /// if the clock stepped back.
    pub fn wait_seconds(&self, now: Timestamp) -> f64 {
        self.free_at_micros.saturating_sub(micros(now)).min(self.prefill_micros) as f64 / 1e6
    }

    /// When the endpoint is expected to have read all prompts sent to it.
    pub(super) fn free_at(&self) -> Timestamp {
        Timestamp(self.free_at_micros.div_ceil(1000))
    }

    /// If all that is to be read were begun now.
    fn latest(&self, now: Timestamp) -> u64 {
        micros(now).saturating_add(self.prefill_micros)
    }

    fn open(&mut self, job: &Job, now: Timestamp) {
        self.requests = self.requests.saturating_add(1);
        self.prefilling = self.prefilling.saturating_add(1);
        self.prefill_tokens = self.prefill_tokens.saturating_add(job.uncached_tokens);
        self.context_tokens = self.context_tokens.saturating_add(job.context_tokens);
        self.kv_tokens = self.kv_tokens.saturating_add(job.kv_tokens);
        let free_at = self.free_at_micros.max(micros(now)).min(self.latest(now));
        self.free_at_micros = free_at.saturating_add(job.prefill_micros.into());
        self.prefill_micros = self.prefill_micros.saturating_add(job.prefill_micros.into());
        self.clock = self.clock.wrapping_add(job.blocks);
    }

    fn start(&mut self, job: &Job, now: Timestamp, seen: bool) {
        self.prefilling = self.prefilling.saturating_sub(1);
        self.prefill_tokens = self.prefill_tokens.saturating_sub(job.uncached_tokens);
        self.prefill_micros = self.prefill_micros.saturating_sub(job.prefill_micros.into());
        // One that had nothing to read tells nothing of those that have, nor does one that broke off or comes as a whole.
        let told = seen && job.prefill_micros > 0;
        self.free_at_micros = if told { self.latest(now) } else { self.free_at_micros.min(self.latest(now)) };
    }

    fn close(&mut self, job: &Job) {
        self.requests = self.requests.saturating_sub(1);
        self.context_tokens = self.context_tokens.saturating_sub(job.context_tokens);
        self.kv_tokens = self.kv_tokens.saturating_sub(job.kv_tokens);
    }

    fn add(&mut self, other: &Self) {
        self.requests = self.requests.saturating_add(other.requests);
        self.prefilling = self.prefilling.saturating_add(other.prefilling);
        self.prefill_tokens = self.prefill_tokens.saturating_add(other.prefill_tokens);
        self.context_tokens = self.context_tokens.saturating_add(other.context_tokens);
        self.kv_tokens = self.kv_tokens.saturating_add(other.kv_tokens);
        self.prefill_micros = self.prefill_micros.saturating_add(other.prefill_micros);
        self.free_at_micros = self.free_at_micros.max(other.free_at_micros);
    }

    fn remove(&mut self, other: &Self, now: Timestamp) {
        self.requests = self.requests.saturating_sub(other.requests);
        self.prefilling = self.prefilling.saturating_sub(other.prefilling);
        self.prefill_tokens = self.prefill_tokens.saturating_sub(other.prefill_tokens);
        self.context_tokens = self.context_tokens.saturating_sub(other.context_tokens);
        self.kv_tokens = self.kv_tokens.saturating_sub(other.kv_tokens);
        self.prefill_micros = self.prefill_micros.saturating_sub(other.prefill_micros);
        self.free_at_micros = self.free_at_micros.min(self.latest(now));
    }
}

fn micros(at: Timestamp) -> u64 {
    at.0.saturating_mul(1000)
}
