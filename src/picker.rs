//! One worker's picker: from a prompt to the endpoint that shall answer it.
//!
//! It reads the newest snapshot, what is in flight and who holds which prefix, asks the profile, and writes down what was
//! decided before any worker decides again. The ledger and the index lie in the store that all workers share. Whatever
//! cannot be known is left to the profile to do without; only a pool of which nothing at all is known has no pick.

use std::fmt;
use std::rc::Rc;

use crate::clock::Timestamp;
use crate::config::Config;
use crate::fleet::{Endpoint, EndpointId, Snapshot};
use crate::ledger::{Entry, Job, Ledger};
use crate::prefix::{Cache, Index};
use crate::prompt::{Blocks, Chain, Prompt};
use crate::schedule::{Candidate, Decision, Request, Rng};
use crate::store::Store;

/// The state of one worker.
#[derive(Debug)]
pub struct Picker {
    config: Rc<Config>,
    blocks: Blocks,
    snapshot: Option<Snapshot>,
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
    /// The pool is empty.
    NoEndpoint,
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
        Self { config, blocks, snapshot: None, ids: Vec::new(), ledger, index, rng }
    }

    /// How prompts are to be cut into blocks.
    pub fn blocks(&self) -> &Blocks {
        &self.blocks
    }

    /// Version of the snapshot in use; `None` before the first.
    pub fn snapshot_version(&self) -> Option<u64> {
        self.snapshot.as_ref().map(|snapshot| snapshot.version)
    }

    /// Takes over a newer snapshot.
    pub fn refresh(&mut self, snapshot: Snapshot) {
        self.blocks.seed = snapshot.seed;
        self.ids = snapshot.endpoints.iter().map(Endpoint::id).collect();
        self.snapshot = Some(snapshot);
    }

    /// Places a request; `prompt` is `None` for one without a body to look at.
    pub fn pick(&mut self, store: &dyn Store, prompt: Option<&Prompt>, now: Timestamp) -> Result<Pick, NoPick> {
        let snapshot = self.snapshot.as_ref().ok_or(NoPick::NoSnapshot)?;
        if snapshot.endpoints.is_empty() {
            return Err(NoPick::NoEndpoint);
        }
        let draft = self.ledger.read(store);
        let known = || snapshot.endpoints.iter().zip(&self.ids);
        let caches: Vec<Cache> = known()
            .map(|(endpoint, id)| Cache {
                endpoint: *id,
                clock: draft.book.line(*id).clock,
                capacity: self.capacity_blocks(endpoint),
            })
            .collect();
        let chains: &[Chain] = prompt.map_or(&[], |prompt| &prompt.chains);
        let lookup = self.index.lookup(store, chains, &caches);

        let candidates = known().zip(&lookup.matched).map(|((endpoint, id), matched)| Candidate {
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

        let first = decision.ranked.first().ok_or(NoPick::AllFilteredOut)?;
        let at = snapshot.endpoints.iter().position(|endpoint| endpoint.address == first.address);
        let at = at.ok_or(NoPick::AllFilteredOut)?;
        let (cache, matched) = caches.get(at).zip(lookup.matched.get(at)).ok_or(NoPick::AllFilteredOut)?;

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

    /// The request was served by `address` after all, because a retry went down the list.
    pub fn moved(&mut self, entry: Entry, address: &[u8], now: Timestamp) -> Entry {
        let endpoints = self.snapshot.iter().flat_map(|snapshot| &snapshot.endpoints);
        let served = endpoints.zip(&self.ids).find(|(endpoint, _)| endpoint.address.as_bytes() == address);
        match served.map(|(_, id)| *id) {
            Some(id) => self.ledger.moved(entry, id, now),
            None => entry,
        }
    }

    /// The request's stream is gone.
    pub fn close(&mut self, entry: Entry, now: Timestamp) {
        self.ledger.close(entry, now);
    }

    /// Writes down what has not been yet, and looks after the other workers.
    pub fn tick(&mut self, store: &dyn Store, now: Timestamp) {
        self.ledger.tick(store, now);
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
            Self::NoEndpoint => "the pool has no model server",
            Self::AllFilteredOut => "no model server may take this request now",
        })
    }
}
