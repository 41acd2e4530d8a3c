//! The endpoints as one worker knows them: those configured, and those that the scraper found.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;

use super::asked::Asked;
use super::foreign::{Foreign, NOTHING};
use crate::clock::Timestamp;
use crate::cold::Order;
use crate::config::Config;
use crate::cost::Work;
use crate::fleet::{Endpoint, Health, Membership, Signals, canonical};
use crate::headers::Headers;
use crate::id::EndpointId;
use crate::learned::Learner;
use crate::ledger::{Book, Line};
use crate::prefix::{Belief, Cache, Lookup};
use crate::rendezvous::Homes;
use crate::saturation::{Seen, Survey};
use crate::schedule::{Candidate, warmth};
use crate::session::{Greeting, Home, Token};
use crate::subset::Subset;

#[derive(Debug)]
pub(super) struct Pool {
    config: Rc<Config>,
    /// In the order of the configuration, and behind them those found, with what the snapshot says of them.
    endpoints: Vec<Endpoint>,
    pub(super) ids: Vec<EndpointId>,
    /// What names each to a client; none if sessions are not told so.
    tokens: Vec<Token>,
    /// What others than this proxy have at each.
    pub(super) foreign: Vec<Foreign>,
}

impl Pool {
    pub(super) fn new(config: Rc<Config>) -> Self {
        let targets = config.pool.endpoints.iter();
        let endpoints = targets.map(|target| Endpoint::new(target.address)).collect();
        Self { config, endpoints, ids: Vec::new(), tokens: Vec::new(), foreign: Vec::new() }
    }

    /// Takes over what a snapshot of the deployment with this `seed` says. A configured endpoint that it lacks is one of which
    /// nothing is known. One that it has too many is not ours, unless it was found and we want such.
    pub(super) fn renew(&mut self, mut told: Vec<Endpoint>, seed: u64) {
        let configured = self.config.pool.endpoints.len();
        self.endpoints.truncate(configured);
        for (at, endpoint) in self.endpoints.iter_mut().enumerate() {
            // Mostly both lists are the same.
            let same = told.get(at).is_some_and(|told| told.address == endpoint.address);
            let at = if same { Some(at) } else { told.iter().position(|told| told.address == endpoint.address) };
            match at.and_then(|at| told.get_mut(at)) {
                Some(told) => std::mem::swap(endpoint, told),
                None => {
                    endpoint.health = Health::Assumed;
                    endpoint.signals = Signals::default();
                    endpoint.membership = Membership::Unlisted;
                }
            }
        }
        if self.config.pool.discovery.is_some() {
            // What is left of configured ones is what they were before.
            let ours = |found: &Endpoint| self.endpoints.iter().any(|endpoint| endpoint.address == found.address);
            told.retain(|found| found.membership != Membership::Unlisted && !ours(found));
            self.endpoints.append(&mut told);
        }
        for endpoint in &mut self.endpoints {
            endpoint.health = endpoint.believed();
        }
        self.ids = self.endpoints.iter().map(Endpoint::id).collect();
        if let Some(session) = &self.config.session {
            let addresses = self.endpoints.iter().map(|endpoint| &*endpoint.address);
            self.tokens = session.tokens(seed, &self.config.pool.name, addresses);
        }
    }

    /// Compares what the servers told, if it is new, with what this proxy has there.
    pub(super) fn tell_apart(&mut self, book: &Book, now: Timestamp) {
        let mut before = std::mem::take(&mut self.foreign).into_iter();
        let known = self.endpoints.iter().zip(&self.ids);
        let foreign = known.map(|(endpoint, id)| {
            let before = before.next().unwrap_or_default();
            before.renewed(&self.told(endpoint, now), endpoint, &book.line(*id))
        });
        self.foreign = foreign.collect();
    }

    /// Where the session of a request with these headers is at home.
    pub(super) fn session(&self, headers: &Headers) -> Home {
        self.config.session.as_ref().map(|session| session.home(headers, &self.tokens)).unwrap_or_default()
    }

    /// What a client is told whose session was at `home` and is now at `address`.
    pub(super) fn greeting(&self, home: Home, address: &[u8]) -> Option<Greeting<'_>> {
        let session = self.config.session.as_ref()?;
        let at = self.position(address).filter(|at| home != Home::At(*at))?;
        self.tokens.get(at).map(|token| session.greeting(token))
    }

    /// Where the endpoint of this address is, however it is written.
    pub(super) fn position(&self, address: &[u8]) -> Option<usize> {
        let at = |address: &[u8]| self.endpoints.iter().position(|endpoint| endpoint.address.as_bytes() == address);
        at(address).or_else(|| at(canonical(address)?.as_bytes()))
    }

    /// What this proxy has at each endpoint. They are looked up once for a request, which is dear enough.
    pub(super) fn lines(&self, book: &Book) -> Vec<Line> {
        self.ids.iter().map(|id| book.line(*id)).collect()
    }

    pub(super) fn caches(&self, lines: &[Line], learner: &Learner) -> Vec<Cache> {
        let known = self.endpoints.iter().zip(&self.ids).zip(lines);
        let cache = |((endpoint, id), line): ((&Endpoint, &EndpointId), &Line)| {
            // In our blocks, the index's unit.
            let told = endpoint.signals.capacity_tokens().map(|tokens| tokens / u64::from(self.block_tokens()));
            let assumed = told.map_or(self.config.prefix.capacity_blocks, |n| u32::try_from(n).unwrap_or(u32::MAX));
            let capacity = learner.cache(*id).capacity(assumed, told.is_some());
            Cache { endpoint: *id, clock: line.clock, capacity }
        };
        known.map(cache).collect()
    }

    /// Tokens that an endpoint has room for, as it tells or as is assumed.
    pub(super) fn room(&self, at: usize) -> u32 {
        let told = self.endpoints.get(at).and_then(|endpoint| endpoint.signals.capacity_tokens());
        let assumed = self.config.prefix.capacity_blocks.saturating_mul(self.block_tokens());
        told.map_or(assumed, |tokens| u32::try_from(tokens).unwrap_or(u32::MAX))
    }

    /// Those that take requests, as this one sees them.
    pub(super) fn candidates<'a>(
        &'a self,
        asked: &Asked<'_>,
        lookup: &Lookup,
        lines: &[Line],
        learner: &Learner,
        cold: Option<&Order>,
        now: Timestamp,
    ) -> Vec<Candidate<'a>> {
        let homes = self.homes(asked);
        let mean_prefill = learner.mean_prefill();
        let known = self.endpoints.iter().zip(&self.ids).zip(&lookup.matched).zip(lines).enumerate();
        let candidate = |(index, (((endpoint, id), matched), line)): (usize, (((&'a Endpoint, _), &u32), &Line))| {
            let id: &EndpointId = id;
            let told = self.told(endpoint, now);
            let cached = matched.saturating_mul(self.block_tokens()).max(homes.believed(index));
            Candidate {
                index,
                labels: self.labels(index).unwrap_or(told.labels),
                in_flight: line.requests,
                in_flight_tokens: line.prefill_tokens,
                matched_blocks: *matched,
                cold_rank: cold.and_then(|cold| cold.rank(*id)),
                standing: learner.standing(*id, now),
                warmth: warmth(endpoint.joined, self.config.pool.warmup, now),
                speed: learner.speed(*id),
                load: self.foreign.get(index).unwrap_or(&NOTHING).load(&told, line, endpoint, mean_prefill, now),
                work: Work {
                    prompt_tokens: asked.tokens,
                    cached_tokens: cached.min(asked.tokens),
                    output_tokens: asked.output_tokens,
                    loads_adapter: false,
                },
                ..told
            }
        };
        // Mostly all of them, and a candidate is too large to be moved again and again.
        let mut candidates = Vec::with_capacity(self.endpoints.len());
        candidates.extend(known.filter(|(index, _)| self.takes_part(*index, asked.subset)).map(candidate));
        // Only a name that some endpoint runs is known to be an adapter's.
        let runs =
            |candidate: &Candidate<'_>| candidate.lora.zip(asked.model).is_some_and(|(lora, model)| lora.runs(model));
        if candidates.iter().any(runs) {
            candidates.iter_mut().for_each(|candidate| candidate.work.loads_adapter = !runs(candidate));
        }
        candidates
    }

    /// Whether nothing more fits where requests may go.
    pub(super) fn is_full(&self, book: &Book, now: Timestamp) -> bool {
        let known = self.endpoints.iter().zip(&self.ids).enumerate().filter(|(index, _)| !self.drains(*index));
        let seen: Vec<_> = known.map(|(_, (endpoint, id))| Seen::of(endpoint, &book.line(*id))).collect();
        Survey::of(&*self.config.saturation.detector, &seen, now).is_full()
    }

    /// What the index says of a prompt where it goes, to be compared with what the answer says.
    pub(super) fn belief(
        &self,
        asked: &Asked<'_>,
        lookup: &Lookup,
        at: usize,
        cache: &Cache,
        book: &Book,
    ) -> Option<Belief> {
        let ([chain], signals) = (asked.chains, &self.endpoints.get(at)?.signals) else { return None };
        let tokens = self.block_tokens();
        Some(Belief {
            told: signals.capacity_tokens().is_some(),
            pending: book.line(cache.endpoint).prefill_tokens / tokens,
            prompt: asked.tokens as f32 / tokens as f32,
            grain: signals.block_size.map_or(1, |size| size.value.div_ceil(tokens).max(1)),
            ..lookup.belief(chain, cache)
        })
    }

    /// Where the prompt is believed to be cached although this worker did not see it sent there.
    fn homes(&self, asked: &Asked<'_>) -> Homes {
        let unseen = asked.prompt.filter(|_| !self.config.sees_all());
        let open = self
            .endpoints
            .iter()
            .enumerate()
            .filter(|(index, endpoint)| endpoint.health != Health::Unreachable && !self.drains(*index));
        unseen.map(|prompt| Homes::of(prompt, open)).unwrap_or_default()
    }

    fn told<'a>(&self, endpoint: &'a Endpoint, now: Timestamp) -> Candidate<'a> {
        Candidate::of(endpoint, now, self.config.scrape.stale_after)
    }

    fn takes_part(&self, index: usize, subset: Option<&Subset>) -> bool {
        let named = |subset: &Subset| self.address(index).is_some_and(|address| subset.names(address));
        !self.drains(index) && subset.is_none_or(named)
    }

    fn drains(&self, index: usize) -> bool {
        let told = self.endpoints.get(index).is_some_and(|endpoint| endpoint.membership == Membership::Draining);
        told || self.config.pool.endpoints.get(index).is_some_and(|target| target.draining)
    }

    fn address(&self, index: usize) -> Option<SocketAddr> {
        let configured = self.config.pool.endpoints.get(index).map(|target| target.address);
        configured.or_else(|| self.endpoints.get(index)?.address.parse().ok())
    }

    fn labels(&self, index: usize) -> Option<&BTreeMap<String, String>> {
        let Config { pool, .. } = &*self.config;
        let configured = pool.endpoints.get(index).map(|target| &target.labels);
        configured.or_else(|| pool.discovery.as_ref().map(|discovery| &discovery.labels))
    }

    /// When the newest signal of any server was read.
    pub(super) fn newest(&self) -> Option<Timestamp> {
        self.endpoints.iter().filter_map(|endpoint| endpoint.signals.newest()).max()
    }

    fn block_tokens(&self) -> u32 {
        self.config.prefix.block_tokens.max(1)
    }
}
