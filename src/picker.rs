//! One worker's picker: from a prompt to the endpoint that shall answer it.
//!
//! It reads the newest snapshot, what is in flight and who holds which prefix, asks the profile, and writes down what was
//! decided before any worker decides again. The ledger and the index lie in the store that all workers share. Whatever
//! cannot be known is left to the profile to do without; only a pool of which nothing at all is known has no pick.

use std::fmt;
use std::rc::Rc;

use crate::clock::Timestamp;
use crate::config::Config;
use crate::fleet::{Endpoint, EndpointId, Health, Signals, Snapshot};
use crate::ledger::{Book, Entry, Job, Ledger};
use crate::prefix::{Cache, Index};
use crate::prompt::{Blocks, Chain, Prompt};
use crate::schedule::{Candidate, Decision, Request, Rng};
use crate::store::Store;

/// The state of one worker.
#[derive(Debug)]
pub struct Picker {
    config: Rc<Config>,
    blocks: Blocks,
    /// Version of the snapshot in use.
    version: Option<u64>,
    /// The configured endpoints, with what the snapshot says of them.
    endpoints: Vec<Endpoint>,
    ids: Vec<EndpointId>,
    ledger: Ledger,
    index: Index,
    rng: Rng,
}

/// A placed request.
#[derive(Debug)]
pub struct Pick {
    /// The endpoints to try, best first; at least one.
    pub decision: Decision,
    /// To be closed when the request's stream is gone.
    pub entry: Entry,
}

/// Why no endpoint was picked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoPick {
    /// No scraper has published anything yet.
    NoSnapshot,
    /// The filters left nothing over.
    AllFilteredOut,
}

impl Picker {
    /// A picker that knows nothing yet. `seed` is this worker's own: it names the worker and makes its choices among
    /// equals unpredictable.
    pub fn new(config: Rc<Config>, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let blocks = Blocks { tokens: config.prefix.block_tokens, max: config.prefix.max_blocks, seed: 0 };
        let ledger = Ledger::new(&config.pool.name, rng.next_u64());
        let index = Index::new(&config.pool.name, config.prefix.max_entries);
        let targets = config.pool.endpoints.iter();
        let endpoints = targets.map(|target| Endpoint::new(target.address, target.labels.clone())).collect();
        Self { config, blocks, version: None, endpoints, ids: Vec::new(), ledger, index, rng }
    }

    /// How prompts are to be cut into blocks.
    pub fn blocks(&self) -> &Blocks {
        &self.blocks
    }

    /// Version of the snapshot in use; `None` before the first.
    pub fn snapshot_version(&self) -> Option<u64> {
        self.version
    }

    /// Takes over what a newer snapshot says of the configured endpoints. Scraper and picker may be configured at different
    /// times: an endpoint that the snapshot lacks is one of which nothing is known, one that it has too many is not ours.
    pub fn refresh(&mut self, snapshot: Snapshot) {
        self.blocks.seed = snapshot.seed;
        self.version = Some(snapshot.version);
        let mut told = snapshot.endpoints;
        for (at, endpoint) in self.endpoints.iter_mut().enumerate() {
            // Mostly both lists are the same.
            let same = told.get(at).is_some_and(|told| told.address == endpoint.address);
            let at = if same { Some(at) } else { told.iter().position(|told| told.address == endpoint.address) };
            match at.and_then(|at| told.get_mut(at)) {
                Some(told) => std::mem::swap(endpoint, told),
                None => {
                    *endpoint = Endpoint { health: Health::Assumed, signals: Signals::default(), ..endpoint.clone() }
                }
            }
        }
        self.ids = self.endpoints.iter().map(Endpoint::id).collect();
    }

    /// Places a request; `prompt` is `None` for one without a body to look at.
    pub fn pick(&mut self, store: &dyn Store, prompt: Option<&Prompt>, now: Timestamp) -> Result<Pick, NoPick> {
        self.version.ok_or(NoPick::NoSnapshot)?;
        let draft = self.ledger.read(store);
        let caches = self.caches(&draft.book);
        let known = || self.endpoints.iter().zip(&self.ids);
        let chains: &[Chain] = prompt.map_or(&[], |prompt| &prompt.chains);
        let lookup = self.index.lookup(store, chains, &caches);

        let candidates = known().zip(&lookup.matched).enumerate().map(|(index, ((endpoint, id), matched))| Candidate {
            index,
            in_flight: draft.book.line(*id).requests,
            matched_blocks: *matched,
            ..Candidate::of(endpoint, now, self.config.scrape.stale_after)
        });
        let request = Request {
            model: prompt.and_then(|prompt| prompt.adapter.as_deref().or(prompt.model.as_deref())),
            blocks: prompt.map_or(0, |prompt| u32::try_from(prompt.blocks()).unwrap_or(u32::MAX)),
            block_tokens: self.blocks.tokens,
            tokens: prompt.map_or(0, |prompt| prompt.tokens),
        };
        let decision = self.config.profile.decide(&request, candidates.collect(), &mut self.rng);

        let first =
            decision.ranked.first().and_then(|first| caches.get(first.index).zip(lookup.matched.get(first.index)));
        let (cache, matched) = first.ok_or(NoPick::AllFilteredOut)?;

        let advance = self.index.advance(&lookup, chains, cache);
        let uncached = request.tokens.saturating_sub(matched.saturating_mul(self.blocks.tokens));
        let job = Job {
            endpoint: cache.endpoint,
            uncached_tokens: uncached,
            context_tokens: request.tokens,
            prefill_micros: uncached.saturating_mul(MICROS_PER_TOKEN),
            blocks: advance.iter().sum(),
        };
        let entry = self.ledger.open(store, draft, job, now);
        self.index.insert(store, &lookup, chains, *cache, &advance, &caches);
        Ok(Pick { decision, entry })
    }

    /// The first piece of the answer came.
    pub fn first_token(&mut self, entry: &mut Entry, now: Timestamp) {
        self.ledger.first_token(entry, now);
    }

    /// The request was served by `address` after all, because a retry went down the list. `chains` are its prompt's: they
    /// are in that server's cache now and not in the one's that failed.
    pub fn moved(
        &mut self,
        store: &dyn Store,
        entry: Entry,
        chains: &[Chain],
        address: &[u8],
        now: Timestamp,
    ) -> Entry {
        let caches = self.caches(&self.ledger.read(store).book);
        let at = self.endpoints.iter().position(|endpoint| endpoint.address.as_bytes() == address);
        let Some(cache) = at.and_then(|at| caches.get(at)).copied() else { return entry };

        let failed = self.index.lookup(store, chains, &caches);
        self.index.forget(store, &failed, chains, entry.endpoint());
        let lookup = self.index.lookup(store, chains, &[cache]);
        let advance = self.index.advance(&lookup, chains, &cache);
        self.index.insert(store, &lookup, chains, cache, &advance, &caches);
        self.ledger.moved(entry, cache.endpoint, advance.iter().sum(), now)
    }

    /// The request's stream is gone.
    pub fn close(&mut self, entry: Entry, now: Timestamp) {
        self.ledger.close(entry, now);
    }

    /// Writes down what has not been yet, and looks after the other workers.
    pub fn tick(&mut self, store: &dyn Store, now: Timestamp) {
        self.ledger.tick(store, now);
    }

    fn caches(&self, book: &Book) -> Vec<Cache> {
        let known = self.endpoints.iter().zip(&self.ids);
        let cache = |(endpoint, id): (&Endpoint, &EndpointId)| Cache {
            endpoint: *id,
            clock: book.line(*id).clock,
            capacity: self.capacity_blocks(endpoint),
        };
        known.map(cache).collect()
    }

    /// How many of our blocks the endpoint's cache holds, in the index's unit.
    fn capacity_blocks(&self, endpoint: &Endpoint) -> u32 {
        let told = endpoint.signals.capacity_tokens().map(|tokens| tokens / u64::from(self.blocks.tokens.max(1)));
        told.map_or(self.config.prefix.capacity_blocks, |blocks| u32::try_from(blocks).unwrap_or(u32::MAX))
    }
}

/// Prefill of a 32B model on two H100 reads 24,000 tokens a second; a first token corrects what is wrong with it.
const MICROS_PER_TOKEN: u32 = 41;

impl fmt::Display for NoPick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoSnapshot => "nothing is known of the model servers yet",
            Self::AllFilteredOut => "no model server may take this request now",
        })
    }
}
