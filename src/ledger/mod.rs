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
//! An answer that does not come as a stream shows no first token. Its prompt counts as read when the virtual clock said it
//! would be, else it would seem to wait for as long as its answer is generated.
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
    /// What of the totals this worker put there and has not taken out, with what is unwritten.
    own: Book,
    /// The same as it is in the totals, as bytes.
    written: Vec<u8>,
    /// Not in the totals yet, in the order they happened.
    unwritten: Vec<Event>,
    /// Requests of this worker whose first token will not be seen and whose prompts are not read yet.
    unseen: Vec<Unseen>,
    /// Of the next entry.
    number: u64,
}

/// A prompt that counts as read at some time.
#[derive(Debug)]
struct Unseen {
    entry: u64,
    until: Timestamp,
    job: Job,
    prefill: Option<Job>,
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
    number: u64,
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
            written: Vec::new(),
            unwritten: Vec::new(),
            unseen: Vec::new(),
            number: 0,
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
        // Others may have taken out what this worker put in; what it writes must not be on top of that.
        if self.members.is_late(now) {
            self.tick(store, now);
            draft = self.read(store);
        }
        for job in [Some(&job), prefill.as_ref()].into_iter().flatten() {
            let event = Event::Opened(job.clone(), now);
            draft.book.apply(&event);
            self.note(event);
        }
        let until = draft.book.line(prefill.as_ref().unwrap_or(&job).endpoint).free_at();
        self.write(store, Some(draft), now);
        self.entry(job, prefill, until)
    }

    /// The first piece of its answer came: its prompt has been read. `seen`: just now, since this is its first token.
    pub fn first_token(&mut self, entry: &mut Entry, seen: bool, now: Timestamp) {
        if self.is_unread(entry) {
            let prefill = entry.prefill.take();
            self.was_read(entry.job.clone(), prefill, seen, now);
        }
    }

    /// It is served by another endpoint than the one it was opened for, whose prefix clock moves on by `blocks` / 65536. Who
    /// reads its prompt, if that is another one, still does.
    pub fn moved(&mut self, mut entry: Entry, endpoint: EndpointId, blocks: u64, now: Timestamp) -> Entry {
        let job = Job { endpoint, blocks, ..entry.job.clone() };
        let unread = self.is_unread(&mut entry);
        let prefill = entry.prefill.filter(|_| unread);
        if unread {
            self.was_read(entry.job.clone(), None, false, now);
        }
        self.note(Event::Closed(entry.job));
        self.note(Event::Opened(job.clone(), now));
        let until = self.own.line(prefill.as_ref().unwrap_or(&job).endpoint).free_at();
        self.entry(job, prefill, until)
    }

    /// It had to bring in more of its prompt than was foreseen, which moves the prefix clock on by `blocks` / 65536 more.
    pub fn aged(&mut self, entry: &Entry, blocks: u64) {
        self.note(Event::Aged(entry.job.endpoint, blocks));
    }

    /// Takes out the lines of endpoints that left the pool long ago: the book would else grow with each that ever was there.
    /// `book` is how it was read just now, `known` are those in the pool.
    pub fn tidy(&mut self, book: &Book, known: &[EndpointId], now: Timestamp) {
        let strangers = book.strangers(known, now);
        if !strangers.is_empty() {
            self.note(Event::Left(strangers));
        }
        // Another worker may have been the first to take them out of the totals.
        self.own.apply(&Event::Left(self.own.strangers(known, now)));
    }

    /// Its stream is gone.
    pub fn close(&mut self, mut entry: Entry, now: Timestamp) {
        self.first_token(&mut entry, false, now);
        self.note(Event::Closed(entry.job));
    }

    /// Writes what is unwritten, says that this worker lives, and takes out what dead workers left.
    pub fn tick(&mut self, store: &dyn Store, now: Timestamp) {
        let due: Vec<_> = self.unseen.extract_if(.., |unseen| unseen.until <= now).collect();
        for Unseen { job, prefill, .. } in due {
            self.was_read(job, prefill, false, now);
        }
        match self.members.tick(store, now) {
            Standing::Member => {}
            // It was counted without a place to keep its part.
            Standing::Entered => self.members.write(store, &self.written),
            Standing::Returned => {
                self.written.clear();
                self.restate(now);
            }
        }
        for left in self.members.reclaim(store, now) {
            self.unwritten.push(Event::Removed(left, now));
        }
        if !self.unwritten.is_empty() {
            self.write(store, None, now);
        }
    }

    /// Requests of this worker in flight.
    pub fn own_requests(&self) -> u32 {
        self.own.lines().map(|(_, line)| line.requests).sum()
    }

    fn entry(&mut self, job: Job, prefill: Option<Job>, until: Timestamp) -> Entry {
        self.number = self.number.wrapping_add(1);
        let number = self.number;
        if !job.streams {
            self.unseen.push(Unseen { entry: number, until, job: job.clone(), prefill: prefill.clone() });
        }
        Entry { number, job, prefill, prefilling: true }
    }

    /// Whether the prompt still counts as not read. Asked once.
    fn is_unread(&mut self, entry: &mut Entry) -> bool {
        let prefilling = std::mem::take(&mut entry.prefilling);
        let at = self.unseen.iter().position(|unseen| unseen.entry == entry.number);
        let unseen = at.map(|at| self.unseen.swap_remove(at));
        prefilling && (entry.job.streams || unseen.is_some())
    }

    fn was_read(&mut self, job: Job, prefill: Option<Job>, seen: bool, now: Timestamp) {
        self.note(Event::Started(job, now, seen));
        if let Some(prefill) = prefill {
            self.note(Event::Started(prefill.clone(), now, seen));
            self.note(Event::Closed(prefill));
        }
    }

    fn note(&mut self, event: Event) {
        self.own.apply(&event);
        self.unwritten.push(event);
    }

    fn write(&mut self, store: &dyn Store, mut draft: Option<Draft>, now: Timestamp) {
        for _ in 0..TRIES {
            let Draft { book, cas } = draft.take().unwrap_or_else(|| self.read(store));
            if store.set(&self.totals, &envelope::seal(&self.totals, 0, &book.encode()), cas) {
                self.unwritten.clear();
                self.written = self.own.encode();
                self.members.write(store, &self.written);
                return;
            }
        }
        // What could not be written goes along with the next try. A store that takes nothing must not fill the memory:
        // then this worker's own book is all there is.
        if self.unwritten.len() > MAX_UNWRITTEN {
            self.restate(now);
        }
    }

    /// Says what this worker has in flight instead of all that happened. What dead workers left stays to be taken out.
    fn restate(&mut self, now: Timestamp) {
        let was = Book::decode(&self.written).unwrap_or_default();
        self.unwritten.retain(|event| matches!(event, Event::Removed(..)));
        self.unwritten.push(Event::Restated(was, self.own.clone(), now));
    }
}
