//! The paged KV cache: blocks with reference counts, and a prefix cache over those that nobody uses.
//!
//! A block whose count falls to zero goes to the back of the free list and keeps its hash, so that a later prompt can
//! take it up again; it is evicted when it reaches the front and is handed out. A request returns its blocks last one
//! first, hence the tail of a prompt is evicted before its head.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasherDefault, Hasher};

/// Index of a block in its pool.
pub(super) type BlockId = u32;

const NONE: BlockId = BlockId::MAX;

#[derive(Clone, Copy)]
struct Block {
    /// 0: not in the prefix cache.
    hash: u64,
    refs: u32,
    prev: BlockId,
    next: BlockId,
}

pub(super) struct BlockPool {
    blocks: Vec<Block>,
    cached: HashMap<u64, BlockId, BuildHasherDefault<Identity>>,
    free: u32,
    front: BlockId,
    back: BlockId,
    /// Blocks that became shareable so far: a request that lacked n blocks at one time lacks at least n minus the
    /// growth of this later, which spares it the lookup.
    shareable: u64,
}

impl BlockPool {
    pub(super) fn new(blocks: u32) -> Self {
        let mut pool = Self {
            blocks: vec![Block { hash: 0, refs: 0, prev: NONE, next: NONE }; blocks as usize],
            cached: HashMap::default(),
            free: 0,
            front: NONE,
            back: NONE,
            shareable: 0,
        };
        (0..blocks).for_each(|id| pool.push_back(id));
        pool
    }

    /// Blocks that no request holds, cached or not.
    pub(super) fn free(&self) -> u32 {
        self.free
    }

    pub(super) fn used(&self) -> u32 {
        self.blocks.len() as u32 - self.free
    }

    pub(super) fn shareable(&self) -> u64 {
        self.shareable
    }

    /// Longest cached run of `hashes` from the first on: its length and how many of those blocks lie in the free list.
    pub(super) fn lookup(&self, hashes: &[u64]) -> (u32, u32) {
        let mut found = (0, 0);
        for id in hashes.iter().map_while(|hash| self.cached.get(hash)) {
            found.0 += 1;
            found.1 += u32::from(self.block(*id).refs == 0);
        }
        found
    }

    /// Takes a reference on each of these blocks, all of which are cached.
    pub(super) fn share(&mut self, hashes: &[u64], table: &mut Vec<BlockId>) {
        for hash in hashes {
            let Some(&id) = self.cached.get(hash) else { return };
            if self.block(id).refs == 0 {
                self.unlink(id);
                self.shareable += 1;
            }
            self.block_mut(id).refs += 1;
            table.push(id);
        }
    }

    /// Hands out the block that has been free longest, evicting what it cached; `None` if all are in use.
    pub(super) fn allocate(&mut self) -> Option<BlockId> {
        let id = self.front;
        if id == NONE {
            return None;
        }
        self.unlink(id);
        let block = self.block_mut(id);
        block.refs = 1;
        let hash = std::mem::take(&mut block.hash);
        if hash != 0 {
            self.cached.remove(&hash);
        }
        Some(id)
    }

    /// Puts a block, full from now on, into the prefix cache. The first block of a hash stays the cached one.
    pub(super) fn register(&mut self, id: BlockId, hash: u64) {
        if self.block(id).hash != 0 {
            return;
        }
        if let Entry::Vacant(free) = self.cached.entry(hash) {
            free.insert(id);
            self.block_mut(id).hash = hash;
            self.shareable += 1;
        }
    }

    /// Gives a request's blocks back, last one first.
    pub(super) fn release(&mut self, table: &mut Vec<BlockId>) {
        while let Some(id) = table.pop() {
            let block = self.block_mut(id);
            block.refs = block.refs.saturating_sub(1);
            if block.refs == 0 {
                self.push_back(id);
            }
        }
    }

    /// Forgets what is cached; blocks in use stay in use.
    pub(super) fn forget(&mut self) {
        self.cached.clear();
        self.blocks.iter_mut().for_each(|block| block.hash = 0);
    }

    fn push_back(&mut self, id: BlockId) {
        let back = self.back;
        let block = self.block_mut(id);
        block.prev = back;
        block.next = NONE;
        if back == NONE {
            self.front = id;
        } else {
            self.block_mut(back).next = id;
        }
        self.back = id;
        self.free += 1;
    }

    fn unlink(&mut self, id: BlockId) {
        let Block { prev, next, .. } = *self.block(id);
        if prev == NONE {
            self.front = next;
        } else {
            self.block_mut(prev).next = next;
        }
        if next == NONE {
            self.back = prev;
        } else {
            self.block_mut(next).prev = prev;
        }
        self.free -= 1;
    }

    #[expect(clippy::indexing_slicing, reason = "ids come from this pool and it never shrinks")]
    fn block(&self, id: BlockId) -> &Block {
        &self.blocks[id as usize]
    }

    #[expect(clippy::indexing_slicing, reason = "ids come from this pool and it never shrinks")]
    fn block_mut(&mut self, id: BlockId) -> &mut Block {
        &mut self.blocks[id as usize]
    }
}

/// Block hashes are uniform already.
#[derive(Default)]
struct Identity(u64);

impl Hasher for Identity {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
