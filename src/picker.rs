//! One worker's picker: from a prompt to the endpoint that shall answer it.
//!
//! It holds the newest snapshot, the ledger and the prefix index, and asks the profile. Whatever cannot be known is left
//! to the profile to do without; only a pool of which nothing at all is known has no pick.

use std::fmt;
use std::rc::Rc;

use crate::clock::Timestamp;
use crate::config::Config;
use crate::fleet::{Endpoint, EndpointId, Snapshot};
use crate::ledger::{Entry, Ledger};
use crate::prefix::Index;
use crate::prompt::{Blocks, Prompt};
use crate::schedule::{Candidate, Decision, Request, Rng};

/// The state of one worker.
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
    /// A picker that knows nothing yet. `seed` makes hashes and choices unpredictable to clients.
    pub fn new(config: Rc<Config>, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let blocks = Blocks { tokens: config.prefix.block_tokens, max: config.prefix.max_blocks, seed: rng.next_u64() };
        let index = Index::new(config.prefix.max_entries);
        Self { config, blocks, snapshot: None, ids: Vec::new(), ledger: Ledger::default(), index, rng }
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
        self.ids = snapshot.endpoints.iter().map(Endpoint::id).collect();
        self.snapshot = Some(snapshot);
    }

    /// Places a request; `prompt` is `None` for one without a body to look at.
    pub fn pick(&mut self, prompt: Option<&Prompt>, now: Timestamp) -> Result<Pick, NoPick> {
        let snapshot = self.snapshot.as_ref().ok_or(NoPick::NoSnapshot)?;
        if snapshot.endpoints.is_empty() {
            return Err(NoPick::NoEndpoint);
        }
        let chains = prompt.map_or(&[][..], |prompt| &prompt.chains);
        let mut matched = Vec::new();
        self.index.lookup(chains, &self.ids, &mut matched);

        let stale_after = self.config.scrape.stale_after;
        let candidates = snapshot.endpoints.iter().zip(&self.ids).enumerate().map(|(i, (endpoint, id))| Candidate {
            in_flight: self.ledger.in_flight(*id),
            matched_blocks: matched.get(i).copied().unwrap_or(0),
            ..Candidate::of(endpoint, now, stale_after)
        });
        let request = Request {
            model: prompt.and_then(|prompt| prompt.adapter.as_deref().or(prompt.model.as_deref())),
            blocks: prompt.map_or(0, |prompt| u32::try_from(prompt.blocks()).unwrap_or(u32::MAX)),
            block_tokens: self.blocks.tokens,
            tokens: prompt.map_or(0, |prompt| prompt.tokens),
        };
        let decision = self.config.profile.decide(&request, candidates.collect(), &mut self.rng);

        let first = decision.ranked.first().ok_or(NoPick::AllFilteredOut)?;
        let found = snapshot.endpoints.iter().zip(&self.ids).find(|(endpoint, _)| endpoint.address == first.address);
        let (endpoint, id) = found.ok_or(NoPick::AllFilteredOut)?;
        self.index.insert(chains, *id, self.capacity_blocks(endpoint));
        let entry = self.ledger.open(*id);
        Ok(Pick { decision, entry })
    }

    /// The request was served by `address` after all, because a retry went down the list.
    pub fn moved(&mut self, entry: Entry, address: &[u8]) -> Entry {
        let endpoints = self.snapshot.iter().flat_map(|snapshot| &snapshot.endpoints);
        let served = endpoints.zip(&self.ids).find(|(endpoint, _)| endpoint.address.as_bytes() == address);
        match served.map(|(_, id)| *id) {
            Some(id) => {
                self.ledger.close(entry);
                self.ledger.open(id)
            }
            None => entry,
        }
    }

    /// The request's stream is gone.
    pub fn close(&mut self, entry: Entry) {
        self.ledger.close(entry);
    }

    /// How many of our blocks the endpoint's cache holds, in the index's unit.
    fn capacity_blocks(&self, endpoint: &Endpoint) -> u32 {
        let told = endpoint.signals.capacity_tokens().map(|tokens| tokens / u64::from(self.blocks.tokens.max(1)));
        told.map_or(self.config.prefix.capacity_blocks, |blocks| u32::try_from(blocks).unwrap_or(u32::MAX))
    }
}

impl fmt::Display for NoPick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoSnapshot => "nothing is known of the model servers yet",
            Self::NoEndpoint => "the pool has no model server",
            Self::AllFilteredOut => "no model server may take this request now",
        })
    }
}
