//! Who writes in the book, and what is left of those who died.
//!
//! A register holds an id and a sign of life for each worker. A place in it is taken with compare-and-set; the place
//! names the key under which the worker keeps its own part of the totals. A worker whose sign of life is too old loses
//! its place to whoever notices first, and that one takes its part out of the totals. So a worker that trapped or was
//! reloaded stops counting within [`DEAD_AFTER`] and two periods, once.
//!
//! A worker that is late itself, because it stalled or the clock stepped, first asks whether it still has its place before
//! it writes to the totals. And it takes nobody for dead that time: mostly all are late together.

use std::time::Duration;

use super::{Book, TRIES};
use crate::clock::Timestamp;
use crate::envelope;
use crate::store::Store;

/// A worker that stalls this long is taken for dead; if it was not, it enters again with its part.
const DEAD_AFTER: Duration = Duration::from_millis(1_250);

/// Between two signs of life.
const PERIOD: Duration = Duration::from_millis(250);

/// More workers than this keep no part and leave what they had when they die.
const MAX_MEMBERS: usize = 256;

/// A worker's place among all.
#[derive(Debug)]
pub(super) struct Members {
    register: Vec<u8>,
    id: u64,
    place: Option<usize>,
    seen: Timestamp,
    /// Its last sign of life was in time.
    in_time: bool,
}

/// What a tick found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Nothing changed.
    Member,
    /// It has a place now and can keep its part.
    Entered,
    /// Others took the worker for dead and its part out of the totals; it is back.
    Returned,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    /// 0: free.
    id: u64,
    seen: Timestamp,
}

impl Members {
    pub(super) fn new(register: Vec<u8>, id: u64) -> Self {
        Self { register, id: id.max(1), place: None, seen: Timestamp(0), in_time: false }
    }

    /// Others may have taken the worker for dead.
    pub(super) fn is_late(&self, now: Timestamp) -> bool {
        now.since(self.seen) > 2 * PERIOD || self.seen > now
    }

    /// Gives a sign of life, and takes a place if the worker has none (any more).
    ///
    /// Who writes the first register is sure of its place only when the next tick finds it: one host cannot create a key
    /// only if it is absent, so two workers can write it over each other.
    pub(super) fn tick(&mut self, store: &dyn Store, now: Timestamp) -> Standing {
        if now.since(self.seen) < PERIOD && self.seen <= now {
            return Standing::Member;
        }
        for _ in 0..TRIES {
            let (mut places, cas) = self.read(store);
            let found = places.iter().position(|place| place.id == self.id);
            let at = found.or_else(|| free(&mut places));
            if let Some(place) = at.and_then(|at| places.get_mut(at)) {
                *place = Place { id: self.id, seen: now };
                if !store.set(&self.register, &self.encode(&places), cas) {
                    continue;
                }
            }
            self.in_time = !self.is_late(now);
            self.seen = now;
            let place = found.or(at.filter(|_| cas != 0));
            let had = std::mem::replace(&mut self.place, place);
            return match (had, found) {
                (Some(_), None) => Standing::Returned,
                (None, _) if place.is_some() => Standing::Entered,
                _ => Standing::Member,
            };
        }
        Standing::Member
    }

    /// The parts of workers that died. Each is given to one worker only.
    pub(super) fn reclaim(&self, store: &dyn Store, now: Timestamp) -> Vec<Book> {
        if self.seen != now || !self.in_time {
            return Vec::new();
        }
        let (places, cas) = self.read(store);
        let is_dead =
            |place: &Place| place.id != 0 && (now.since(place.seen) > DEAD_AFTER || place.seen > now.plus(DEAD_AFTER));
        if !places.iter().any(is_dead) {
            return Vec::new();
        }
        let left = places
            .iter()
            .map(|place| if is_dead(place) { Place { id: 0, seen: now } } else { *place })
            .collect::<Vec<_>>();
        // Before their places are free, lest what one that returns writes there is taken for what it left.
        let dead = places.iter().enumerate().filter(|(_, place)| is_dead(place));
        let parts = dead.filter_map(|(at, place)| self.part(store, at, place.id)).collect();
        if store.set(&self.register, &self.encode(&left), cas) { parts } else { Vec::new() }
    }

    /// Keeps the worker's own part of the totals, a book as bytes.
    pub(super) fn write(&self, store: &dyn Store, own: &[u8]) {
        let Some(at) = self.place else { return };
        let key = self.part_key(at);
        let cas = store.get(&key).cas;
        store.set(&key, &envelope::seal(&key, self.id, own), cas);
    }

    fn part(&self, store: &dyn Store, at: usize, id: u64) -> Option<Book> {
        let key = self.part_key(at);
        let value = store.get(&key).value?;
        let sealed = envelope::open(&key, &value).filter(|sealed| sealed.version == id)?;
        Book::decode(sealed.payload)
    }

    fn part_key(&self, at: usize) -> Vec<u8> {
        let mut key = self.register.clone();
        key.extend_from_slice(format!("/{at}").as_bytes());
        key
    }

    fn read(&self, store: &dyn Store) -> (Vec<Place>, u32) {
        let found = store.get(&self.register);
        let sealed = found.value.as_deref().and_then(|value| envelope::open(&self.register, value));
        let places = sealed.map_or(&[][..], |sealed| sealed.payload.as_chunks::<16>().0);
        let place = |bytes: &[u8; 16]| {
            let (words, _) = bytes.as_chunks::<8>();
            let [id, seen] = words else { return Place { id: 0, seen: Timestamp(0) } };
            Place { id: u64::from_le_bytes(*id), seen: Timestamp(u64::from_le_bytes(*seen)) }
        };
        (places.iter().map(place).collect(), found.cas)
    }

    fn encode(&self, places: &[Place]) -> Vec<u8> {
        let payload: Vec<u8> =
            places.iter().flat_map(|place| [place.id.to_le_bytes(), place.seen.0.to_le_bytes()]).flatten().collect();
        envelope::seal(&self.register, 0, &payload)
    }
}

/// A place that nobody has.
fn free(places: &mut Vec<Place>) -> Option<usize> {
    if let Some(at) = places.iter().position(|place| place.id == 0) {
        return Some(at);
    }
    (places.len() < MAX_MEMBERS).then(|| {
        places.push(Place { id: 0, seen: Timestamp(0) });
        places.len() - 1
    })
}
