//! A table from block hash to holders whose size is fixed: two hash tables, a young and an old one.
//!
//! Writes go to the young table, an entry that is in the old one is copied over when it is written. When the young one
//! is full the old one is emptied and the two change places. So what was not written for longest goes first, without a
//! list, a sweep or a pause, and at worst one half of the entries is there.

use std::hash::{BuildHasherDefault, Hasher};

use hashbrown::HashMap;

/// That an endpoint took a block in.
#[derive(Clone, Copy)]
pub(super) struct Holder {
    /// The endpoint's place in the index, and which of the endpoints that had this place it is.
    pub(super) slot: u16,
    pub(super) life: u16,
    pub(super) stamp: u32,
}

/// Seven holders, so that with its key an entry is as long as a cache line.
type Entry = [Holder; 7];

const NOBODY: Holder = Holder { slot: u16::MAX, life: 0, stamp: 0 };

type Table = HashMap<u64, Entry, Prehashed>;

pub(super) struct Generations {
    young: Table,
    old: Table,
    /// Entries of a table.
    limit: usize,
}

impl Generations {
    pub(super) fn new(max_entries: usize) -> Self {
        let limit = (max_entries / 2).max(1);
        let table = || Table::with_capacity_and_hasher(limit, Prehashed::default());
        Self { young: table(), old: table(), limit }
    }

    /// Calls `each` with whoever was noted for a block.
    pub(super) fn holders(&self, hash: u64, mut each: impl FnMut(&Holder)) {
        for key in keys(hash) {
            let Some(entry) = self.young.get(&key).or_else(|| self.old.get(&key)) else { return };
            for holder in entry {
                if holder.slot == NOBODY.slot {
                    return;
                }
                each(holder);
            }
        }
    }

    /// Notes a holder, in the place of what it was noted as before or of one that `is_live` no more.
    pub(super) fn put(&mut self, hash: u64, holder: Holder, is_live: impl Fn(&Holder) -> bool) {
        for key in keys(hash) {
            let entry = self.entry(key);
            if let Some(place) = entry.iter_mut().find(|held| held.slot == holder.slot || !is_live(held)) {
                *place = holder;
                return;
            }
        }
    }

    /// The entry of a key in the young table.
    fn entry(&mut self, key: u64) -> &mut Entry {
        let mut entry = [NOBODY; 7];
        if !self.young.contains_key(&key) {
            entry = self.old.get(&key).copied().unwrap_or(entry);
            if self.young.len() >= self.limit {
                std::mem::swap(&mut self.young, &mut self.old);
                self.young.clear();
            }
        }
        self.young.entry(key).or_insert(entry)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }
}

/// Where the holders of a block are: one entry, and more when that is full.
fn keys(hash: u64) -> impl Iterator<Item = u64> {
    // The golden ratio, odd, so that the keys of a block differ in all their bits.
    std::iter::successors(Some(hash), |key| Some(key.wrapping_add(0x9E37_79B9_7F4A_7C15)))
}

/// Keys that are hashes already.
pub(super) type Prehashed = BuildHasherDefault<Identity>;

#[derive(Default)]
pub(super) struct Identity(u64);

impl Hasher for Identity {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}
