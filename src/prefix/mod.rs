//! Who holds which prefix.
//!
//! An engine keeps the KV cache of prompts it has served and drops what was not used for longest when it runs out of
//! room. This index guesses what each endpoint still holds from what was sent to it, without asking. It lies in shared
//! data, so that all workers of a proxy know what each of them did.
//!
//! Nothing is ever deleted for an endpoint. Each one has a clock that runs in blocks (kept in the ledger, with what else
//! all workers count), and a block sent to it is stamped with the clock less the block's distance from the head of its
//! prompt, since an engine drops the tail of a prompt first. The block is believed to be held while
//! `clock - stamp < capacity`: the difference is about the block's place in the engine's own list of least recently used
//! blocks. So a block never outlives its parent, a prompt longer than the cache loses its tail at once, and an endpoint
//! that has left costs nothing: nobody asks for its id, and when it comes back it has another one.
//!
//! A new block pushes all others one place further, so the clock moves on by one. A block used again from place `a` pushes
//! only the `a` blocks that were before it: the clock moves on by `a / capacity`, the mean over all blocks. Without this
//! term an endpoint with a full cache would be believed to hold half as much again as it does.
//!
//! Blocks are kept in pages of 32 (see `page`), pages in a fixed number of values, so a prompt of 128 blocks takes four
//! reads and at most four writes, and one more of each where it leaves the way of others. Memory has a bound whatever
//! comes in.
//!
//! How much a cache holds is believed until answers tell (`correction`).

mod correction;
mod page;
#[cfg(test)]
mod tests;

use std::cell::OnceCell;

use hashbrown::HashMap;

use crate::envelope;
use crate::id::EndpointId;
use crate::prompt::Chain;
use crate::store::Store;

pub use correction::{Belief, Correction};
use page::{BLOCKS, Block, Holder};

/// Bits of a clock after the point.
const CLOCK_FRACTION: u32 = 16;

/// Pages that are read or written for a request at most. A prompt of 2048 blocks has 64.
const MAX_PAGES: usize = 96;

/// Pages that a value holds on average when the index is full.
const PAGES_PER_VALUE: usize = 8;

/// What all endpoints are believed to hold.
#[derive(Debug)]
pub struct Index {
    key: Vec<u8>,
    values: u32,
}

/// An endpoint to ask about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cache {
    /// In one of its lives: a server that left and came back, with an empty cache, is another one.
    pub endpoint: EndpointId,
    /// How far its clock has come, in blocks / 65536.
    pub clock: u64,
    /// Blocks it holds.
    pub capacity: u32,
}

/// What was found for a prompt.
#[derive(Debug, Default)]
pub struct Lookup {
    /// For each cache the leading blocks it is believed to hold, without a gap, summed over the chains.
    pub matched: Vec<u32>,
    pages: Vec<Found>,
}

/// A page's value as read.
#[derive(Debug)]
struct Found {
    chain: usize,
    start: usize,
    pages: Vec<u8>,
    cas: u32,
}

impl Cache {
    /// Its clock moves on.
    pub fn take_in(&mut self, advance: &[u64]) {
        self.clock = self.clock.wrapping_add(advance.iter().sum());
    }

    fn now(&self) -> u32 {
        (self.clock >> CLOCK_FRACTION) as u32
    }

    /// What it can hold of a chain; the rest is gone by the time the prompt has been read.
    fn fitting<'a>(&self, chain: &'a Chain) -> &'a [u64] {
        chain.hashes.get(..self.capacity as usize).unwrap_or(&chain.hashes)
    }

    /// Blocks of a page it still holds, of `common` that are like those asked for.
    fn holds(&self, holder: &Holder, common: usize) -> usize {
        let left = self.capacity.saturating_sub(self.now().wrapping_sub(holder.stamp));
        common.min(usize::from(holder.depth)).min(left as usize)
    }
}

impl Index {
    /// The index of `pool`, for about `max_entries` blocks: a value of at most 4 KB for each 256 of them.
    pub fn new(pool: &str, max_entries: usize) -> Self {
        let values = (max_entries / (BLOCKS * PAGES_PER_VALUE)).clamp(1, u32::MAX as usize) as u32;
        Self { key: format!("endpoint-picker/{pool}/prefix/").into_bytes(), values }
    }

    /// Asks what each of `caches` holds of `chains`. Reads no further than any of them goes.
    pub fn lookup(&self, store: &dyn Store, chains: &[Chain], caches: &[Cache]) -> Lookup {
        let mut lookup = Lookup { matched: vec![0; caches.len()], pages: Vec::new() };
        if chains.is_empty() {
            return lookup;
        }
        let places = places(caches);
        for (number, chain) in chains.iter().enumerate() {
            if lookup.pages.len() >= MAX_PAGES {
                break;
            }
            let mut runs = vec![0; caches.len()];
            let mut start = 0;
            while let Some(hashes) = chain.hashes.get(start..).map(first_page).filter(|hashes| !hashes.is_empty()) {
                let found = self.read(store, number, start, hashes);
                let mut holders = Vec::new();
                let common = page::find(&found.pages, hashes, &mut |holder| holders.push(holder)).unwrap_or(0);
                lookup.pages.push(found);
                for holder in &holders {
                    let Some(at) = places.get(&holder.id) else { continue };
                    if let (Some(cache), Some(run)) = (caches.get(*at), runs.get_mut(*at))
                        && *run == start
                    {
                        *run += cache.holds(holder, common);
                    }
                }
                start += common;
                if common == 0 || !runs.contains(&start) || lookup.pages.len() >= MAX_PAGES {
                    break;
                }
            }
            for (matched, run) in lookup.matched.iter_mut().zip(runs) {
                *matched = matched.saturating_add(u32::try_from(run).unwrap_or(u32::MAX));
            }
        }
        lookup
    }

    /// How far the clock of `cache` moves on with each of `chains` that it is sent, in blocks / 65536.
    pub fn advance(&self, lookup: &Lookup, chains: &[Chain], cache: &Cache) -> Vec<u64> {
        let chains = chains.iter().enumerate();
        chains.map(|(number, chain)| lookup.pushed(number, cache.fitting(chain), cache)).collect()
    }

    /// Notes that `chains` were sent to `cache`, whose clock moves on by `advance` from what it says. `caches` are all that
    /// count; holders that are none of them make room. A value that another worker changes at the same moment is tried
    /// once more.
    pub fn insert(
        &self,
        store: &dyn Store,
        lookup: &Lookup,
        chains: &[Chain],
        mut cache: Cache,
        advance: &[u64],
        caches: &[Cache],
    ) {
        // Mostly all pages are noted already, and nobody asks.
        let known = OnceCell::new();
        let alive = |holder: &Holder| {
            let at = known.get_or_init(|| places(caches)).get(&holder.id);
            at.and_then(|at| caches.get(*at)).is_some_and(|cache| cache.holds(holder, BLOCKS) > 0)
        };
        let mut budget = MAX_PAGES;
        for ((number, chain), advance) in chains.iter().enumerate().zip(advance) {
            cache.clock = cache.clock.wrapping_add(*advance);
            let fitting = cache.fitting(chain);
            let mut start = 0;
            while let Some(hashes) = fitting.get(start..).map(first_page).filter(|hashes| !hashes.is_empty()) {
                let Some(left) = budget.checked_sub(1) else { return };
                budget = left;
                let read;
                let found = match lookup.page(number, start) {
                    Some(found) => found,
                    None => {
                        read = self.read(store, number, start, hashes);
                        &read
                    }
                };
                let taken = page::takes(&found.pages, hashes);
                let stamp = cache.now().wrapping_sub(start as u32);
                let holder = Holder { id: page::short(cache.endpoint), depth: taken as u8, stamp };
                // Noted so lately that writing it again would change little.
                if !page::is_noted(&found.pages, hashes, &holder, cache.capacity / 64)
                    && !self.write(store, found, hashes, holder, alive)
                {
                    let again = self.read(store, number, start, hashes);
                    let depth = page::takes(&again.pages, hashes) as u8;
                    self.write(store, &again, hashes, Holder { depth, ..holder }, alive);
                }
                start += taken;
            }
        }
    }

    /// Notes that `endpoint` does not hold `chains`, although they were sent to it.
    pub fn forget(&self, store: &dyn Store, lookup: &Lookup, chains: &[Chain], endpoint: EndpointId) {
        for found in &lookup.pages {
            let hashes = chains.get(found.chain).and_then(|chain| chain.hashes.get(found.start..)).map(first_page);
            let Some(hashes) = hashes else { continue };
            let Some(first) = hashes.first().map(page::block) else { continue };
            if let Some(pages) = page::remove(&found.pages, hashes, page::short(endpoint)) {
                let key = self.key_of(first);
                store.set(&key, &envelope::seal(&key, 0, &pages), found.cas);
            }
        }
    }

    fn write(
        &self,
        store: &dyn Store,
        found: &Found,
        hashes: &[u64],
        holder: Holder,
        alive: impl Fn(&Holder) -> bool,
    ) -> bool {
        let Some(first) = hashes.first().map(page::block) else { return true };
        let key = self.key_of(first);
        let (pages, rest) = page::put(&found.pages, hashes, holder, alive);
        let written = store.set(&key, &envelope::seal(&key, 0, &pages), found.cas);
        if written
            && let Some(rest) = rest
            && let Some(first) = rest.blocks.first().copied()
        {
            let (key, pages, cas) = self.value(store, first);
            // If it begins a page already, somebody was faster.
            if !page::has(&pages, first) {
                store.set(&key, &envelope::seal(&key, 0, &page::prepend(&pages, &rest)), cas);
            }
        }
        written
    }

    fn read(&self, store: &dyn Store, chain: usize, start: usize, hashes: &[u64]) -> Found {
        let (_, pages, cas) = self.value(store, hashes.first().map_or([0; 4], page::block));
        Found { chain, start, pages, cas }
    }

    /// The key, pages and token of the value in which a page that begins with `first` lies.
    fn value(&self, store: &dyn Store, first: Block) -> (Vec<u8>, Vec<u8>, u32) {
        let key = self.key_of(first);
        let found = store.get(&key);
        let sealed = found.value.as_deref().and_then(|value| envelope::open(&key, value));
        let pages = sealed.map_or_else(Vec::new, |sealed| sealed.payload.to_vec());
        (key, pages, found.cas)
    }

    fn key_of(&self, first: Block) -> Vec<u8> {
        let mut key = self.key.clone();
        key.extend_from_slice(&(u32::from_le_bytes(first) % self.values).to_le_bytes());
        key
    }
}

impl Lookup {
    /// What is believed of `chain`, the first one of the prompt, at `cache`.
    pub fn belief(&self, chain: &Chain, cache: &Cache) -> Belief {
        let mut belief = Belief { capacity: cache.capacity, ..Belief::default() };
        for (start, common, holder) in self.noted(0, &chain.hashes, cache) {
            let (held, depth) = (cache.holds(&holder, common), common.min(usize::from(holder.depth)));
            if held > 0 && belief.held as usize == start {
                belief.held += held as u32;
                belief.age = cache.now().wrapping_sub(holder.stamp) + held as u32 - 1;
            }
            belief.noted += depth as u32;
            if depth < common {
                break;
            }
        }
        belief
    }

    /// How far `hashes`, a chain of the prompt, push the blocks of `cache` on.
    fn pushed(&self, number: usize, hashes: &[u64], cache: &Cache) -> u64 {
        let (mut end, mut pushed) = (0, 0);
        for (start, common, holder) in self.noted(number, hashes, cache) {
            let held = cache.holds(&holder, common);
            let age = u64::from(cache.now().wrapping_sub(holder.stamp));
            let ages = (0..held as u64).map(|at| (age + at).min(cache.capacity.into())).sum::<u64>();
            pushed += (ages << CLOCK_FRACTION).checked_div(cache.capacity.into()).unwrap_or(0);
            pushed += ((common - held) as u64) << CLOCK_FRACTION;
            end = start + common;
        }
        pushed + ((hashes.len().saturating_sub(end) as u64) << CLOCK_FRACTION)
    }

    /// The pages of a chain that say something of `cache`, up to the first that does not: where each starts, how many of
    /// its blocks are like those of the chain, and what it says.
    fn noted<'a>(
        &'a self,
        number: usize,
        hashes: &'a [u64],
        cache: &Cache,
    ) -> impl Iterator<Item = (usize, usize, Holder)> + 'a {
        let (id, mut next) = (page::short(cache.endpoint), 0);
        std::iter::from_fn(move || {
            let start = next;
            let rest = hashes.get(start..).filter(|rest| !rest.is_empty())?;
            let mut own = None;
            let mut note = |holder: Holder| own = own.or(Some(holder).filter(|holder| holder.id == id));
            let common =
                page::find(&self.page(number, start)?.pages, first_page(rest), &mut note).filter(|n| *n > 0)?;
            next += common;
            Some((start, common, own?))
        })
    }

    fn page(&self, chain: usize, start: usize) -> Option<&Found> {
        self.pages.iter().find(|found| found.chain == chain && found.start == start)
    }
}

/// Where each endpoint is in `caches`.
fn places(caches: &[Cache]) -> HashMap<u32, usize> {
    caches.iter().enumerate().map(|(at, cache)| (page::short(cache.endpoint), at)).collect()
}

/// The blocks that a page can have.
fn first_page(hashes: &[u64]) -> &[u64] {
    hashes.get(..BLOCKS).unwrap_or(hashes)
}
