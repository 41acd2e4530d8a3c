//! What this proxy sent where and has not seen end.
//!
//! Scraped queues are late by an engine step or more; the proxy's own book is not. All workers keep one [`Book`] in
//! shared data, the totals: with a book for each worker a prefix-heavy load goes from 0.07 s to 34 s until the first
//! token with four workers, because each of them fills the server that the others are filling.
//!
//! A request makes three entries: it opens, its first token comes, it ends. Opening is written down at once, since the
//! next decision of any worker must see it. The others wait for this worker's next decision or tick, which costs a few
//! milliseconds of knowledge and saves two writes a request. [`Entry`] is consumed when the stream is gone, whatever
//! ended it, so it is closed exactly once. Entries have no time limit: a long generation is work, not a leak.
//!
//! A request whose prompt is read elsewhere than where its answer is generated counts at both endpoints until its first
//! token, and then at the one that generates.
//!
//! A worker also writes down what of the totals is its own. When it dies, another one takes that part out again
//! (`members`).

mod book;
mod members;
#[cfg(test)]
mod tests;

use crate::clock::Timestamp;
use crate::envelope;
use crate::id::EndpointId;
use crate::store::Store;

pub use book::{Book, Job, Line};

use book::Event;
use members::{Members, Standing};

/// How often a write is tried when other workers write at the same moment.
const TRIES: u32 = 8;

/// Events kept while the store takes none.
const MAX_UNWRITTEN: usize = 256;

/// One worker's hand on the book of all.
#[derive(Debug)]
pub struct Ledger {
    totals: Vec<u8>,
    members: Members,
    /// What of the totals this worker put there and has not taken out.
    own: Book,
    /// Not in the totals yet, in the order they happened.
    unwritten: Vec<Event>,
}

/// The totals as read, with what this worker has not written yet.
#[derive(Debug)]
pub struct Draft {
    /// The book to decide by.
    pub book: Book,
    cas: u32,
}

/// One request in flight. Not `Clone`: [`Ledger::close`] takes it away.
#[derive(Debug)]
#[must_use = "an entry that is never closed counts for ever"]
pub struct Entry {
    job: Job,
    /// What another endpoint than the job's has to do with it before its first token.
    prefill: Option<Job>,
    prefilling: bool,
}

impl Entry {
    /// Where it is counted until it ends.
    pub fn endpoint(&self) -> EndpointId {
        self.job.endpoint
    }

    /// Who reads its prompt, as long as it has no first token.
    pub fn reader(&self) -> EndpointId {
        self.prefill.as_ref().unwrap_or(&self.job).endpoint
    }

    /// Its first token has not come.
    pub fn is_prefilling(&self) -> bool {
        self.prefilling
    }
}

impl Ledger {
    /// The hand of worker `id`, unique among the workers, on the book of `pool`.
    pub fn new(pool: &str, id: u64) -> Self {
        let key = |what: &str| format!("endpoint-picker/{pool}/ledger/{what}").into_bytes();
        Self {
            totals: key("totals"),
            members: Members::new(key("members"), id),
            own: Book::default(),
            unwritten: Vec::new(),
        }
    }

    /// Reads the book to decide by.
    pub fn read(&self, store: &dyn Store) -> Draft {
        let found = store.get(&self.totals);
        // What does not open was torn while being read, or is not ours. A token that old cannot overwrite it either.
        let sealed = found.value.as_deref().and_then(|value| envelope::open(&self.totals, value));
        let mut book = sealed.and_then(|sealed| Book::decode(sealed.payload)).unwrap_or_default();
        for event in &self.unwritten {
            book.apply(event);
        }
        Draft { book, cas: found.cas }
    }

    /// A request goes out, and every worker shall know. `prefill` is what another endpoint has to do with it before its first
    /// token.
    pub fn open(
        &mut self,
        store: &dyn Store,
        mut draft: Draft,
        job: Job,
        prefill: Option<Job>,
        now: Timestamp,
    ) -> Entry {
        for job in [Some(&job), prefill.as_ref()].into_iter().flatten() {
            let event = Event::Opened(job.clone(), now);
            draft.book.apply(&event);
            self.note(event);
        }
        self.write(store, Some(draft));
        Entry { job, prefill, prefilling: true }
    }

    /// The first piece of its answer came: its prompt has been read.
    pub fn first_token(&mut self, entry: &mut Entry, now: Timestamp) {
        if std::mem::take(&mut entry.prefilling) {
            self.note(Event::Started(entry.job.clone(), now));
            if let Some(prefill) = entry.prefill.take() {
                self.note(Event::Started(prefill.clone(), now));
                self.note(Event::Closed(prefill));
            }
        }
    }

    /// It is served by another endpoint than the one it was opened for, whose prefix clock moves on by `blocks` / 65536. Who
    /// reads its prompt, if that is another one, still does.
    pub fn moved(&mut self, mut entry: Entry, endpoint: EndpointId, blocks: u64, now: Timestamp) -> Entry {
        let job = Job { endpoint, blocks, ..entry.job.clone() };
        let prefill = entry.prefill.take();
        self.first_token(&mut entry, now);
        self.note(Event::Closed(entry.job));
        self.note(Event::Opened(job.clone(), now));
        Entry { job, prefill, prefilling: true }
    }

    /// It had to bring in more of its prompt than was foreseen, which moves the prefix clock on by `blocks` / 65536 more.
    pub fn aged(&mut self, entry: &Entry, blocks: u64) {
        self.note(Event::Aged(entry.job.endpoint, blocks));
    }

    /// Its stream is gone.
    pub fn close(&mut self, mut entry: Entry, now: Timestamp) {
        self.first_token(&mut entry, now);
        self.note(Event::Closed(entry.job));
    }

    /// Writes what is unwritten, says that this worker lives, and takes out what dead workers left.
    pub fn tick(&mut self, store: &dyn Store, now: Timestamp) {
        if self.members.tick(store, now) == Standing::Returned {
            self.unwritten = vec![Event::Added(self.own.clone())];
        }
        for left in self.members.reclaim(store, now) {
            self.unwritten.push(Event::Removed(left, now));
        }
        if !self.unwritten.is_empty() {
            self.write(store, None);
        }
    }

    /// Requests of this worker in flight.
    pub fn own_requests(&self) -> u32 {
        self.own.lines().map(|(_, line)| line.requests).sum()
    }

    fn note(&mut self, event: Event) {
        self.own.apply(&event);
        self.unwritten.push(event);
    }

    fn write(&mut self, store: &dyn Store, mut draft: Option<Draft>) {
        for _ in 0..TRIES {
            let Draft { book, cas } = draft.take().unwrap_or_else(|| self.read(store));
            if store.set(&self.totals, &envelope::seal(&self.totals, 0, &book.encode()), cas) {
                self.unwritten.clear();
                self.members.write(store, &self.own);
                return;
            }
        }
        // What could not be written goes along with the next try. A store that takes nothing must not fill the memory:
        // then this worker's own book is all there is.
        if self.unwritten.len() > MAX_UNWRITTEN {
            self.unwritten = vec![Event::Added(self.own.clone())];
        }
    }
}
