//! Who holds which prefix.
//!
//! An engine keeps the KV cache of prompts it has served and drops what was not used for longest when it runs out of
//! room. This index guesses what each endpoint still holds from what was sent to it, without asking.
//!
//! Nothing is ever deleted for an endpoint. Each one has a clock that runs in blocks, and a block sent to it is stamped
//! with the clock less the block's distance from the head of its prompt, since an engine drops the tail of a prompt
//! first. The block is believed to be held while `clock - stamp < capacity`: the difference is about the block's place in
//! the engine's own list of least recently used blocks. So a block never outlives its parent, a prompt longer than the
//! cache loses its tail at once, and an endpoint that has left costs nothing: nobody asks for its id, and when it comes
//! back it has another one.
//!
//! A new block pushes all others one place further, so the clock moves on by one. A block used again from place `a` pushes
//! only the `a` blocks that were before it: the clock moves on by `a / capacity`, the mean over all blocks. Without this
//! term an endpoint with a full cache would be believed to hold half as much again as it does.
//!
//! Memory has a bound whatever comes in: see [`Index::new`].

mod generations;
#[cfg(test)]
mod tests;

use hashbrown::HashMap;

use crate::fleet::EndpointId;
use crate::prompt::Chain;

use self::generations::{Generations, Holder, Prehashed};

/// Endpoints known at once. Past it the one that was sent nothing for longest is forgotten, which is as good as cold.
pub const MAX_ENDPOINTS: usize = 4096;

/// Bits of a clock after the point.
const CLOCK_FRACTION: u32 = 16;

/// What each endpoint is believed to hold.
pub struct Index {
    blocks: Generations,
    slots: Vec<Slot>,
    by_id: HashMap<EndpointId, u16, Prehashed>,
    /// Inserts so far.
    inserts: u64,
}

/// The state of an endpoint. Holders name its place, which is shorter than its id.
#[derive(Clone, Copy)]
struct Slot {
    id: EndpointId,
    /// How many endpoints had this place before.
    life: u16,
    /// Places that a block untouched so far has been pushed back, in 1/65536; the whole part is used modulo 2^32.
    clock: u64,
    /// Blocks its cache holds.
    capacity: u32,
    /// The last insert for it.
    used: u64,
}

impl Slot {
    /// The place of a block in the list of least recently used ones; the largest for one that was never there.
    fn age(&self, holder: &Holder) -> u32 {
        if self.life == holder.life { self.now().wrapping_sub(holder.stamp) } else { u32::MAX }
    }

    fn holds(&self, holder: &Holder) -> bool {
        self.age(holder) < self.capacity
    }

    fn now(&self) -> u32 {
        (self.clock >> CLOCK_FRACTION) as u32
    }

    /// Moves the clock on for blocks used whose ages add up to `ages`, each at most the capacity.
    fn advance(&mut self, ages: u64) {
        let places = (ages << CLOCK_FRACTION).checked_div(u64::from(self.capacity)).unwrap_or(0);
        self.clock = self.clock.wrapping_add(places);
    }
}

impl Index {
    /// An index of at most `max_entries` entries, at least 2. An entry is a block and up to seven endpoints that hold it;
    /// a block held by more has more entries. When there are too many, up to half of them go, those not written for
    /// longest.
    ///
    /// Memory is set aside at once: an entry takes 65 bytes in a table that is filled to between 7/16 and 7/8, so 75 to
    /// 149 bytes for each of `max_entries`, and at most 300 KB for the endpoints.
    pub fn new(max_entries: usize) -> Self {
        Self { blocks: Generations::new(max_entries), slots: Vec::new(), by_id: HashMap::default(), inserts: 0 }
    }

    /// How many leading blocks of `chains` each of `endpoints` is believed to hold, without a gap, summed over the chains.
    /// The answers replace what is in `matched`, in the order of `endpoints`; they are in blocks. Endpoints never
    /// inserted hold none.
    pub fn lookup(&self, chains: &[Chain], endpoints: &[EndpointId], matched: &mut Vec<u32>) {
        matched.clear();
        matched.resize(endpoints.len(), 0);
        let places: Vec<Option<u16>> = endpoints.iter().map(|id| self.by_id.get(id).copied()).collect();
        let mut runs = vec![0; self.slots.len()];
        for chain in chains {
            runs.fill(0);
            self.runs(chain, &mut runs);
            for (matched, place) in matched.iter_mut().zip(&places) {
                *matched += place.and_then(|place| runs.get(usize::from(place))).copied().unwrap_or(0);
            }
        }
    }

    /// Notes that `chains` were sent to `endpoint`, whose cache holds `capacity` blocks of the size of ours. The latest
    /// capacity counts, for the past too.
    pub fn insert(&mut self, chains: &[Chain], endpoint: EndpointId, capacity: u32) {
        let place = self.place(endpoint);
        self.inserts += 1;
        for chain in chains {
            // What lies beyond the capacity is gone by the time the prompt has been read.
            let fitting = chain.hashes.get(..capacity as usize).unwrap_or(&chain.hashes);
            let Some(slot) = self.slots.get_mut(usize::from(place)) else { return };
            slot.capacity = capacity;
            slot.used = self.inserts;
            let ages = fitting.iter().map(|hash| age(&self.blocks, *hash, place, slot).min(capacity));
            slot.advance(ages.map(u64::from).sum());
            let (life, now) = (slot.life, slot.now());
            // From the tail, so that when entries must go the head of a prompt outlives its tail.
            for (depth, hash) in fitting.iter().enumerate().rev() {
                let holder = Holder { slot: place, life, stamp: now.wrapping_sub(depth as u32) };
                self.blocks.put(*hash, holder, |held| is_live(&self.slots, held));
            }
        }
    }

    /// Counts for every endpoint the blocks it holds from the head of the chain on.
    fn runs(&self, chain: &Chain, runs: &mut [u32]) {
        for (hash, depth) in chain.hashes.iter().zip(0..) {
            let mut held = false;
            self.blocks.holders(*hash, |holder| {
                let place = usize::from(holder.slot);
                let Some((slot, run)) = self.slots.get(place).zip(runs.get_mut(place)) else { return };
                if *run == depth && slot.holds(holder) {
                    *run += 1;
                    held = true;
                }
            });
            if !held {
                return;
            }
        }
    }

    /// The place of an endpoint, a new one if it has none.
    fn place(&mut self, id: EndpointId) -> u16 {
        if let Some(place) = self.by_id.get(&id) {
            return *place;
        }
        let fresh = Slot { id, life: 0, clock: 0, capacity: 0, used: self.inserts };
        let place = if self.slots.len() < MAX_ENDPOINTS {
            self.slots.push(fresh);
            self.slots.len() as u16 - 1
        } else {
            let Some((place, oldest)) = self.slots.iter_mut().enumerate().min_by_key(|(_, slot)| slot.used) else {
                return 0;
            };
            self.by_id.remove(&oldest.id);
            *oldest = Slot { life: oldest.life.wrapping_add(1), ..fresh };
            place as u16
        };
        self.by_id.insert(id, place);
        place
    }
}

/// How long ago `slot`, at `place`, used a block.
fn age(blocks: &Generations, hash: u64, place: u16, slot: &Slot) -> u32 {
    let mut age = u32::MAX;
    blocks.holders(hash, |holder| {
        if holder.slot == place {
            age = age.min(slot.age(holder));
        }
    });
    age
}

fn is_live(slots: &[Slot], holder: &Holder) -> bool {
    slots.get(usize::from(holder.slot)).is_some_and(|slot| slot.holds(holder))
}
