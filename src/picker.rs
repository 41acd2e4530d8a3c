//! One worker's picker: from a prompt to the endpoint that shall answer it.
//!
//! It reads the newest snapshot, what is in flight and who holds which prefix, asks the profile, and writes down what was
//! decided before any worker decides again. The ledger and the index lie in the store that all workers share. Whatever
//! cannot be known is left to the profile to do without; only a pool of which nothing at all is known has no pick.

use std::fmt;
use std::rc::Rc;

use crate::clock::Timestamp;
use xxhash_rust::xxh3::xxh3_64;

use crate::config::{Config, Sharing};
use crate::cost::{Constants, Load, Work, nominal_first_token};
use crate::fleet::{Endpoint, Health, Signals, Snapshot};
use crate::id::EndpointId;
use crate::learned::Learner;
use crate::ledger::{Book, Entry, Job, Ledger, Line};
use crate::prefix::{Belief, Cache, Correction, Index};
use crate::prompt::{Blocks, Chain, Prompt};
use crate::schedule::{Candidate, Decision, Request, Rng, warmth};
use crate::store::Store;
use crate::usage::Usage;

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
    /// What others than this proxy have at each endpoint.
    foreign: Vec<Foreign>,
    /// What the answers of each endpoint's present life say of its cache.
    corrections: Vec<Correction>,
    learner: Learner,
    ledger: Ledger,
    index: Index,
    /// Goes on by one with each request.
    turn: u64,
    rng: Rng,
}

/// A placed request.
#[derive(Debug)]
pub struct Pick {
    /// The endpoints to try, best first; at least one.
    pub decision: Decision,
    /// To be closed when the request's stream is gone.
    pub entry: Entry,
    /// To be compared with what happens.
    pub forecast: Forecast,
}

/// What was expected of a request when it was placed.
#[derive(Clone, Copy, Debug)]
pub struct Forecast {
    picked_at: Timestamp,
    first_token_at: Option<Timestamp>,
    model: u64,
    first_token_seconds: f64,
    step_seconds: f64,
    /// Of a request with one prompt: of several, an answer tells no more than the sum.
    belief: Option<Belief>,
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
        let learner = Learner::new(&config.pool.name, config.ledger == Sharing::Shared);
        let targets = config.pool.endpoints.iter();
        let endpoints = targets.map(|target| Endpoint::new(target.address)).collect();
        Self {
            corrections: Vec::new(),
            config,
            blocks,
            version: None,
            endpoints,
            ids: Vec::new(),
            foreign: Vec::new(),
            learner,
            ledger,
            index,
            turn: rng.next_u64(),
            rng,
        }
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
    pub fn refresh(&mut self, store: &dyn Store, snapshot: Snapshot, now: Timestamp) {
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
        let ids: Vec<_> = self.endpoints.iter().map(Endpoint::id).collect();
        let kept = |(at, id)| self.corrections.get(at).filter(|_| self.ids.get(at) == Some(id)).copied();
        self.corrections = ids.iter().enumerate().map(|known| kept(known).unwrap_or_default()).collect();
        self.ids = ids;
        // A worker that was just reloaded knows what the others learned before its first request.
        self.learner.tick(store, &self.ids, now);
        let book = self.ledger.read(store).book;
        let stale_after = self.config.scrape.stale_after;
        let known = self.endpoints.iter().zip(&self.ids);
        self.foreign = known
            .map(|(endpoint, id)| Foreign::of(&Candidate::of(endpoint, now, stale_after), endpoint, &book.line(*id)))
            .collect();
    }

    /// Places a request; `prompt` is `None` for one without a body to look at.
    pub fn pick(&mut self, store: &dyn Store, prompt: Option<&Prompt>, now: Timestamp) -> Result<Pick, NoPick> {
        self.version.ok_or(NoPick::NoSnapshot)?;
        let draft = self.ledger.read(store);
        let caches = self.caches(&draft.book);
        let known = || self.endpoints.iter().zip(&self.ids);
        let chains: &[Chain] = prompt.map_or(&[], |prompt| &prompt.chains);
        let lookup = self.index.lookup(store, chains, &caches);

        let model = prompt.and_then(|prompt| prompt.adapter.as_deref().or(prompt.model.as_deref()));
        let model_hash = xxh3_64(model.unwrap_or_default());
        let output_tokens = match prompt {
            Some(prompt) => self.learner.expected_output(model_hash, prompt.max_output_tokens),
            None => 0,
        };
        let prompt_tokens = prompt.map_or(0, |prompt| prompt.tokens);
        let warmup = self.config.pool.warmup;
        let candidates = known().zip(&lookup.matched).enumerate().map(|(index, ((endpoint, id), matched))| {
            let line = draft.book.line(*id);
            let foreign = self.foreign.get(index).copied().unwrap_or_default();
            Candidate {
                index,
                in_flight: line.requests,
                in_flight_tokens: line.prefill_tokens,
                matched_blocks: *matched,
                warmth: warmth(endpoint.joined, warmup, now),
                speed: self.learner.speed(*id),
                load: Load { mean_prefill_seconds: self.learner.mean_prefill(), ..foreign.load(&line, endpoint, now) },
                work: Work {
                    prompt_tokens,
                    cached_tokens: matched.saturating_mul(self.blocks.tokens).min(prompt_tokens),
                    output_tokens,
                    loads_adapter: false,
                },
                ..Candidate::of(endpoint, now, self.config.scrape.stale_after)
            }
        });
        let drains = |at: usize| self.config.pool.endpoints.get(at).is_some_and(|target| target.draining);
        let mut candidates: Vec<_> = candidates.filter(|candidate| !drains(candidate.index)).collect();
        // Only a name that some endpoint runs is known to be an adapter's.
        let runs = |candidate: &Candidate<'_>| candidate.lora.zip(model).is_some_and(|(lora, model)| lora.runs(model));
        if candidates.iter().any(runs) {
            candidates.iter_mut().for_each(|candidate| candidate.work.loads_adapter = !runs(candidate));
        }
        let request = Request {
            model,
            blocks: prompt.map_or(0, |prompt| u32::try_from(prompt.blocks()).unwrap_or(u32::MAX)),
            block_tokens: self.blocks.tokens,
            turn: self.turn,
        };
        self.turn = self.turn.wrapping_add(1);
        let decision = self.config.profile.decide(&request, candidates.clone(), &mut self.rng);

        let first = decision.ranked.first().ok_or(NoPick::AllFilteredOut)?.index;
        let chosen = candidates.iter().find(|candidate| candidate.index == first);
        let (chosen, cache) = chosen.zip(caches.get(first)).ok_or(NoPick::AllFilteredOut)?;
        let advance = self.index.advance(&lookup, chains, cache);
        let constants = Constants::default();
        let nominal = constants.prefill_seconds(chosen.work);
        if prompt_tokens > 0 {
            self.learner.observe_prefill(nominal);
        }
        let prefill = chosen.speed.prefill * nominal;
        let job = Job {
            endpoint: cache.endpoint,
            uncached_tokens: chosen.work.uncached_tokens(),
            // What it shares with others is there already.
            context_tokens: chosen.work.uncached_tokens().saturating_add(output_tokens),
            prefill_micros: if prompt.is_some() { (prefill * 1e6) as u32 } else { 0 },
            blocks: advance.iter().sum(),
        };
        let forecast = Forecast {
            picked_at: now,
            first_token_at: None,
            model: model_hash,
            first_token_seconds: nominal_first_token(&constants, &chosen.speed, &chosen.load, &chosen.work),
            step_seconds: constants.decode_step_seconds(
                f64::from(chosen.load.requests) + 1.0,
                f64::from(chosen.load.context_tokens) + f64::from(prompt_tokens),
            ),
            belief: if let [chain] = chains {
                let grain = self.endpoints.get(chosen.index).and_then(|endpoint| endpoint.signals.block_size);
                Some(Belief {
                    prompt: prompt_tokens as f32 / self.blocks.tokens as f32,
                    grain: grain.map_or(1, |size| size.value.div_ceil(self.blocks.tokens.max(1)).max(1)),
                    ..lookup.belief(chain, cache)
                })
            } else {
                None
            },
        };
        let entry = self.ledger.open(store, draft, job, now);
        self.index.insert(store, &lookup, chains, *cache, &advance, &caches);
        Ok(Pick { decision, entry, forecast })
    }

    /// The first piece of the answer came. `streams`: the answer comes token by token, so this is its first one.
    pub fn first_token(&mut self, entry: &mut Entry, forecast: &mut Forecast, streams: bool, now: Timestamp) {
        self.ledger.first_token(entry, now);
        if streams {
            forecast.first_token_at = Some(now);
            let observed = now.since(forecast.picked_at).as_secs_f64();
            self.learner.observe_first_token(entry.endpoint(), forecast.first_token_seconds, observed, now);
        }
    }

    /// The answer came to its end, and `usage` is what it told. True if the endpoint had clearly less of the prompt in its
    /// cache than was believed.
    pub fn finished(&mut self, entry: &Entry, forecast: &Forecast, usage: &Usage, now: Timestamp) -> bool {
        let output = usage.output_tokens.unwrap_or(usage.events);
        if output > 1 {
            self.learner.observe_output(forecast.model, output, now);
            if let Some(first) = forecast.first_token_at {
                let per_token = now.since(first).as_secs_f64() / f64::from(output - 1);
                self.learner.observe_decode(entry.endpoint(), forecast.step_seconds, per_token, now);
            }
        }
        // One that has been away since has another id.
        let at = self.ids.iter().position(|id| *id == entry.endpoint());
        let correction = at.and_then(|at| self.corrections.get_mut(at));
        correction.zip(forecast.belief).is_some_and(|(correction, belief)| correction.learn(&belief, usage))
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
        self.learner.tick(store, &self.ids, now);
    }

    fn caches(&self, book: &Book) -> Vec<Cache> {
        let known = self.endpoints.iter().zip(&self.ids).zip(&self.corrections);
        let cache = |((endpoint, id), correction): ((&Endpoint, &EndpointId), &Correction)| {
            // In our blocks, the index's unit.
            let told = endpoint.signals.capacity_tokens().map(|tokens| tokens / u64::from(self.blocks.tokens.max(1)));
            let assumed = told.map_or(self.config.prefix.capacity_blocks, |n| u32::try_from(n).unwrap_or(u32::MAX));
            let capacity = correction.capacity(assumed, told.is_some());
            Cache { endpoint: *id, clock: book.line(*id).clock, capacity }
        };
        known.map(cache).collect()
    }
}

/// What direct clients and other gateways have at an endpoint: what the server told less what this proxy had there then.
/// To take the greater of the two instead would count what was sent since the scrape twice.
#[derive(Clone, Copy, Debug, Default)]
struct Foreign {
    requests: Option<u32>,
    waiting: Option<u32>,
    kv_tokens: Option<u32>,
}

impl Foreign {
    fn of(told: &Candidate<'_>, endpoint: &Endpoint, own: &Line) -> Self {
        let requests = told.running.zip(told.waiting).map(|(running, waiting)| running.saturating_add(waiting));
        let used = told.kv_usage.zip(endpoint.signals.capacity_tokens());
        Self {
            requests: requests.map(|requests| requests.saturating_sub(own.requests)),
            waiting: told.waiting.map(|waiting| waiting.saturating_sub(own.prefilling)),
            kv_tokens: used
                .map(|(share, capacity)| ((share * capacity as f64) as u32).saturating_sub(own.context_tokens)),
        }
    }

    fn load(self, own: &Line, endpoint: &Endpoint, now: Timestamp) -> Load {
        let capacity = endpoint.signals.capacity_tokens();
        Load {
            wait_seconds: own.wait_seconds(now),
            requests: own.requests,
            prefilling: own.prefilling,
            context_tokens: own.context_tokens,
            foreign_requests: self.requests,
            foreign_waiting: self.waiting,
            foreign_kv_tokens: self.kv_tokens,
            capacity_tokens: capacity.map(|tokens| u32::try_from(tokens).unwrap_or(u32::MAX)),
            mean_prefill_seconds: None,
        }
    }
}

impl fmt::Display for NoPick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoSnapshot => "nothing is known of the model servers yet",
            Self::AllFilteredOut => "no model server may take this request now",
        })
    }
}

#[cfg(test)]
mod tests;
