//! One worker's picker: from a prompt to the endpoint that shall answer it.
//!
//! It reads the newest snapshot, what is in flight and who holds which prefix, asks the profile, and writes down what was
//! decided before any worker decides again. The ledger and the index lie in the store that all workers share. Whatever
//! cannot be known is left to the profile to do without; only a pool of which nothing at all is known has no pick.

mod asked;
mod fate;
mod forecast;
mod foreign;
mod job;
mod pool;
mod split;
#[cfg(test)]
mod tests;

use std::fmt;
use std::rc::Rc;

use crate::clock::Timestamp;
use crate::cold::Cold;
use crate::config::Config;
use crate::fleet::Snapshot;
use crate::headers::Headers;
use crate::health::Readiness;
use crate::learned::{Learner, Standing};
use crate::ledger::{Entry, Ledger};
use crate::prefix::{Cache, Index};
use crate::prompt::{Blocks, Chain, Prompt};
use crate::schedule::{Candidate, Decision, Ranked, Request, Rng};
use crate::session::{Greeting, Home};
use crate::store::Store;
use crate::subset::Subset;
use crate::usage::Usage;

use asked::Asked;
pub use forecast::Forecast;
use job::{job, prefill_seconds, within};
use pool::Pool;

/// The state of one worker.
#[derive(Debug)]
pub struct Picker {
    config: Rc<Config>,
    blocks: Blocks,
    /// Version of the snapshot in use.
    version: Option<u64>,
    pool: Pool,
    learner: Learner,
    ledger: Ledger,
    index: Index,
    /// If the profile asks for it.
    cold: Option<Cold>,
    /// Goes on by one with each request.
    turn: u64,
    rng: Rng,
}

/// A request to place. Default: one without a body to look at.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ask<'a> {
    /// What its body asks for.
    pub prompt: Option<&'a Prompt>,
    /// Its headers, as far as they matter.
    pub headers: &'a Headers,
    /// The only endpoints that may be picked; `None`: all.
    pub subset: Option<&'a Subset>,
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
    /// Where its session was at home.
    pub session: Home,
}

/// Who reads the prompt of a request that another endpoint answers.
struct Split<'a> {
    ranked: Ranked,
    reader: Candidate<'a>,
    cache: Cache,
    advance: Vec<u64>,
}

/// Why no endpoint was picked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoPick {
    /// No scraper has published anything yet.
    NoSnapshot,
    /// The proxy asked for one of a subset, and nobody in it takes requests.
    EmptySubset,
    /// The filters left nothing over.
    AllFilteredOut,
    /// The pool is full, and the request may be shed.
    Saturated,
}

impl Picker {
    /// A picker that knows nothing yet. `seed` is this worker's own: it names the worker and makes its choices among
    /// equals unpredictable.
    pub fn new(config: Rc<Config>, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let blocks = Blocks {
            tokens: config.prefix.block_tokens,
            max: config.prefix.max_blocks,
            seed: 0,
            openings: !config.sees_all(),
        };
        let ledger = Ledger::new(&config.pool.name, rng.next_u64());
        let index = Index::new(&config.pool.name, config.prefix.max_entries);
        let learner = Learner::new(&config.pool.name, config.sees_all());
        let cold = Cold::new(&config.pool.name, config.cold_memory());
        Self {
            pool: Pool::new(config.clone()),
            config,
            blocks,
            version: None,
            learner,
            ledger,
            index,
            cold,
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

    /// Whether what is known of the servers is fresh.
    pub fn readiness(&self, now: Timestamp) -> Readiness {
        Readiness::of(self.version.and(self.pool.newest()), now, self.config.scrape.stale_after)
    }

    /// Endpoints that fail the requests they get.
    pub fn failing(&self) -> usize {
        self.learner.failing()
    }

    /// Takes over what a newer snapshot says of the endpoints. Scraper and picker may be configured at different times: a
    /// configured endpoint that the snapshot lacks is one of which nothing is known; one that it has too many is not ours,
    /// unless it was found and this configuration finds endpoints, too.
    pub fn refresh(&mut self, store: &dyn Store, snapshot: Snapshot, now: Timestamp) {
        self.blocks.seed = snapshot.seed;
        self.version = Some(snapshot.version);
        self.pool.renew(snapshot.endpoints, snapshot.seed);
        // A worker that was just reloaded knows what the others learned before its first request.
        self.learner.tick(store, &self.pool.ids, now);
        // And counts, if it dies right after that.
        self.ledger.tick(store, now);
        let book = self.ledger.read(store).book;
        self.pool.tell_apart(&book, now);
        self.ledger.tidy(&book, &self.pool.ids, now);
    }

    /// Places a request.
    pub fn pick(&mut self, store: &dyn Store, ask: Ask<'_>, now: Timestamp) -> Result<Pick, NoPick> {
        self.pick_probing(store, ask, true, now)
    }

    /// `may_probe`: whether a failing endpoint that is due may get it.
    fn pick_probing(
        &mut self,
        store: &dyn Store,
        ask: Ask<'_>,
        may_probe: bool,
        now: Timestamp,
    ) -> Result<Pick, NoPick> {
        self.version.ok_or(NoPick::NoSnapshot)?;
        let draft = self.ledger.read(store);
        if self.config.objectives.priority(ask.headers) < 0 && self.pool.is_full(&draft.book, now) {
            return Err(NoPick::Saturated);
        }
        let asked = Asked::of(ask, &self.learner);
        let lines = self.pool.lines(&draft.book);
        let caches = self.pool.caches(&lines, &self.learner);
        let lookup = self.index.lookup(store, asked.chains, &caches);

        let order = self.cold.as_ref().map(|cold| cold.read(store));
        let mut candidates = self.pool.candidates(&asked, &lookup, &lines, &self.learner, order.as_ref(), now);
        if candidates.is_empty() && ask.subset.is_some() {
            return Err(NoPick::EmptySubset);
        }
        if !may_probe {
            let due = candidates.iter_mut().filter(|candidate| candidate.standing == Standing::Due);
            due.for_each(|candidate| candidate.standing = Standing::Failing);
        }
        let session = self.pool.session(ask.headers);
        let request = Request {
            session,
            model: asked.model,
            blocks: asked.blocks,
            block_tokens: self.blocks.tokens,
            headers: ask.headers,
            now,
            turn: self.turn,
        };
        self.turn = self.turn.wrapping_add(1);
        let disaggregation = self.config.disaggregation.as_ref();
        let readers = disaggregation.map(|_| split::part(&asked, &mut candidates)).unwrap_or_default();
        let mut decision = self.config.profile.decide(&request, &mut candidates, &mut self.rng);
        let first = decision.ranked.first().ok_or(NoPick::AllFilteredOut)?.index;
        let chosen = candidates.iter().find(|candidate| candidate.index == first);
        let (chosen, cache) = chosen.zip(caches.get(first)).ok_or(NoPick::AllFilteredOut)?;

        if chosen.standing == Standing::Due && !self.learner.probe(store, cache.endpoint, now) {
            // Another worker sent the probe. Where this happens once it may happen often, so this request is none.
            return self.pick_probing(store, ask, false, now);
        }

        let advance = self.index.advance(&lookup, asked.chains, cache);
        let split = disaggregation.and_then(|it| split::reader(it, &request, chosen, readers, &mut self.rng));
        let split = split.and_then(|(ranked, reader)| {
            let cache = *caches.get(reader.index)?;
            if reader.standing == Standing::Due && !self.learner.probe(store, cache.endpoint, now) {
                // Another worker sent the probe. The one that generates can read as well.
                return None;
            }
            let advance = self.index.advance(&lookup, asked.chains, &cache);
            Some(Split { ranked, reader, cache, advance })
        });
        // A prompt that is handed over counts as cached where it was not.
        let belief = if split.is_some() { None } else { self.pool.belief(&asked, &lookup, first, cache, &draft.book) };
        let reader = split.as_ref().map_or(chosen, |split| &split.reader);
        let forecast = Forecast::of(&asked, chosen, reader, belief, now);
        if asked.tokens > 0 {
            self.learner.observe_prefill(prefill_seconds(&within(reader.work, self.pool.room(reader.index))));
        }
        let whole = job(&asked, chosen, cache, &advance, self.pool.room(first));
        let (job, prefill) = match &split {
            None => (whole, None),
            Some(split) => {
                let room = self.pool.room(split.reader.index);
                let read = job(&asked, &split.reader, &split.cache, &split.advance, room);
                let (generating, reading) = split::jobs(whole, read);
                (generating, Some(reading))
            }
        };
        let entry = self.ledger.open(store, draft, job, prefill, now);
        self.index.insert(store, &lookup, asked.chains, *cache, &advance, &caches);
        // A request without a prompt fills no cache.
        if let Some((cold, order)) = self.cold.as_ref().zip(order)
            && asked.prompt.is_some()
            && Candidate::all_cold(&candidates)
        {
            cold.used(store, order, cache.endpoint);
            if let Some(split) = &split {
                cold.used(store, cold.read(store), split.cache.endpoint);
            }
        }
        if let Some(Split { ranked, cache: reads, advance: read, .. }) = split {
            // What has just been written must neither be overwritten nor seem to be from the future.
            let mut caches = caches;
            caches.iter_mut().filter(|cache| cache.endpoint == entry.endpoint()).for_each(|it| it.take_in(&advance));
            let lookup = self.index.lookup(store, asked.chains, &[reads]);
            self.index.insert(store, &lookup, asked.chains, reads, &read, &caches);
            decision.split(ranked);
        }
        Ok(Pick { decision, entry, forecast, session })
    }

    /// The first piece of the answer came. `streams`: the answer comes token by token, so this is its first one.
    pub fn first_token(&mut self, entry: &mut Entry, forecast: &mut Forecast, streams: bool, now: Timestamp) {
        let reader = entry.reader();
        self.ledger.first_token(entry, streams, now);
        if streams {
            forecast.first_token_at = Some(now);
            // While its body was still coming it was the client that took its time.
            if !forecast.arriving {
                let observed = now.since(forecast.picked_at).as_secs_f64();
                self.learner.observe_first_token(reader, forecast.first_token_seconds, observed, now);
            }
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
        let lost = forecast.belief.and_then(|belief| self.learner.observe_usage(entry.endpoint(), &belief, usage, now));
        if let Some(blocks) = lost {
            self.ledger.aged(entry, blocks);
        }
        lost.is_some()
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
        let caches = self.pool.caches(&self.pool.lines(&self.ledger.read(store).book), &self.learner);
        let Some(cache) = self.pool.position(address).and_then(|at| caches.get(at)).copied() else { return entry };

        let failed = self.index.lookup(store, chains, &caches);
        self.index.forget(store, &failed, chains, entry.endpoint());
        let lookup = self.index.lookup(store, chains, &[cache]);
        let advance = self.index.advance(&lookup, chains, &cache);
        self.index.insert(store, &lookup, chains, cache, &advance, &caches);
        self.ledger.moved(entry, cache.endpoint, advance.iter().sum(), now)
    }

    /// What the answer tells a client whose session was at `home`, now that `address` serves it: nothing if it is still
    /// there, or if nobody asks for sessions.
    pub fn greeting(&self, home: Home, address: &[u8]) -> Option<Greeting<'_>> {
        self.pool.greeting(home, address)
    }

    /// The request's stream is gone.
    pub fn close(&mut self, entry: Entry, now: Timestamp) {
        self.ledger.close(entry, now);
    }

    /// Writes down what has not been yet, and looks after the other workers.
    pub fn tick(&mut self, store: &dyn Store, now: Timestamp) {
        self.ledger.tick(store, now);
        self.learner.tick(store, &self.pool.ids, now);
    }
}

impl<'a> From<Option<&'a Prompt>> for Ask<'a> {
    fn from(prompt: Option<&'a Prompt>) -> Self {
        Self { prompt, ..Self::default() }
    }
}

impl fmt::Display for NoPick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoSnapshot => "nothing is known of the model servers yet",
            Self::EmptySubset => "none of the model servers asked for takes requests",
            Self::AllFilteredOut => "no model server may take this request now",
            Self::Saturated => "the model servers are full and this request can wait",
        })
    }
}
