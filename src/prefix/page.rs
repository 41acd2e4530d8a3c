//! Pages of blocks, several to a value in shared data.
//!
//! A page is up to [`BLOCKS`] consecutive blocks of a chain, found by its first block, whose hash stands for all that came
//! before. The pages are a tree. Where a prompt leaves a page in its middle, the page is cut in two there and the prompt
//! goes on in a page of its own, so that each page is used as a whole. For each endpoint that took blocks of it in, a page
//! says how many from its start, and when.
//!
//! A value is a list of pages, the one written last first; what does not fit any more falls off its end.
//!
//! | bytes | what |
//! |---|---|
//! | 1, 1 | number of blocks, with the top bit set if the page was cut there and must not grow; number of holders |
//! | 4 each | low half of each block's hash; to take one for another costs no more than a cache miss |
//! | 9 each | holder: half of its id, depth in blocks, stamp |

use crate::id::EndpointId;

/// Blocks of a page: of 64 tokens they are 8 KB of text, so that a prompt of 128 KB takes 16 reads.
pub(super) const BLOCKS: usize = 32;

/// Bytes of a value. Reading one costs about a microsecond up to here.
const MAX_VALUE: usize = 4000;

/// A page's holders; an endpoint beyond these takes the place of the one that came first.
const MAX_HOLDERS: usize = u8::MAX as usize;

const HOLDER: usize = 9;

const CLOSED: u8 = 0x80;

/// Half of a block's hash.
pub(super) type Block = [u8; 4];

/// An endpoint that took a page in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Holder {
    pub(super) id: u32,
    /// Blocks from the start of the page.
    pub(super) depth: u8,
    /// The endpoint's clock less the page's place in its prompt.
    pub(super) stamp: u32,
}

/// A page by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Page {
    /// At least one.
    pub(super) blocks: Vec<Block>,
    /// What follows has pages of its own.
    pub(super) closed: bool,
    pub(super) holders: Vec<Holder>,
}

/// A page as it lies in a value.
#[derive(Clone, Copy)]
struct Lying<'a> {
    closed: bool,
    blocks: &'a [Block],
    holders: &'a [[u8; HOLDER]],
}

pub(super) fn block(hash: &u64) -> Block {
    (*hash as u32).to_le_bytes()
}

/// Half of an id is enough to tell the endpoints of a pool apart.
pub(super) fn short(EndpointId(id): EndpointId) -> u32 {
    id as u32
}

/// How many leading blocks of `hashes` are those of the page that begins with the first of them; `None` if there is no
/// such page. Calls `each` with its holders.
pub(super) fn find(value: &[u8], hashes: &[u64], each: &mut dyn FnMut(Holder)) -> Option<usize> {
    let page = lying(value, hashes)?;
    page.holders.iter().filter_map(Holder::read).for_each(each);
    Some(page.common(hashes))
}

/// How many of `hashes` the page that begins with the first of them will have: all if there is none or if it ends before
/// they do and can grow; else those up to where they leave it.
pub(super) fn takes(value: &[u8], hashes: &[u64]) -> usize {
    lying(value, hashes).map_or(hashes.len(), |page| {
        let common = page.common(hashes);
        if common == page.blocks.len() && !page.closed { hashes.len() } else { common }
    })
}

/// Whether `put` would change little: the page is as long as it shall be, not about to fall off, and `holder` is noted
/// with its depth by a stamp at most `lag` behind.
pub(super) fn is_noted(value: &[u8], hashes: &[u64], holder: &Holder, lag: u32) -> bool {
    let front = value.get(..value.len().min(MAX_VALUE / 2)).unwrap_or(value);
    lying(front, hashes).is_some_and(|page| {
        let is_it = |held: Holder| {
            held.id == holder.id && held.depth >= holder.depth && holder.stamp.wrapping_sub(held.stamp) <= lag
        };
        page.blocks.len() == usize::from(holder.depth) && page.holders.iter().filter_map(Holder::read).any(is_it)
    })
}

/// The value with `holder` noted for as many of `hashes` as the page [`takes`], which is its depth; and the rest of the
/// page if it was cut. Holders that are not `alive` go.
pub(super) fn put(
    value: &[u8],
    hashes: &[u64],
    holder: Holder,
    alive: impl Fn(&Holder) -> bool,
) -> (Vec<u8>, Option<Page>) {
    let taken = usize::from(holder.depth);
    let (mut holders, mut rest, mut closed) = (vec![holder], None, false);
    if let Some(page) = lying(value, hashes) {
        let held = page.holders.iter().filter_map(Holder::read).filter(&alive);
        let others = held.clone().filter(|held| held.id != holder.id).take(MAX_HOLDERS - 1);
        holders.extend(others.map(|held| Holder { depth: held.depth.min(holder.depth), ..held }));
        closed = page.closed;
        if let Some((_, cut @ [_, ..])) = page.blocks.split_at_checked(taken) {
            let beyond = |held: Holder| {
                let depth = held.depth.checked_sub(holder.depth).filter(|depth| *depth > 0)?;
                Some(Holder { depth, stamp: held.stamp.wrapping_sub(holder.depth.into()), ..held })
            };
            closed = true;
            // A full page goes on elsewhere already.
            let full = page.closed || page.blocks.len() == BLOCKS;
            rest = Some(Page { blocks: cut.to_vec(), closed: full, holders: held.filter_map(beyond).collect() });
        }
    }
    let blocks = hashes.iter().take(taken).map(block).collect();
    (prepend(value, &Page { blocks, closed, holders }), rest)
}

/// The value without the holder `id` of the page that begins with the first of `hashes`; `None` if it is not there.
pub(super) fn remove(value: &[u8], hashes: &[u64], id: u32) -> Option<Vec<u8>> {
    let page = lying(value, hashes)?;
    let held: Vec<Holder> = page.holders.iter().filter_map(Holder::read).collect();
    let left: Vec<Holder> = held.iter().filter(|held| held.id != id).copied().collect();
    let changed = left.len() < held.len();
    changed.then(|| prepend(value, &Page { blocks: page.blocks.to_vec(), closed: page.closed, holders: left }))
}

/// The value with `page` in front, in the place of the one that begins alike.
pub(super) fn prepend(value: &[u8], page: &Page) -> Vec<u8> {
    let mut new = Vec::with_capacity(value.len() + 2 + 4 * BLOCKS + HOLDER);
    write(&mut new, &page.blocks, page.closed, page.holders.iter().map(Holder::bytes));
    for other in pages(value).filter(|other| other.blocks.first() != page.blocks.first()) {
        if new.len() + 2 + 4 * other.blocks.len() + HOLDER * other.holders.len() > MAX_VALUE {
            break;
        }
        write(&mut new, other.blocks, other.closed, other.holders.iter().copied());
    }
    new
}

/// Whether a page begins with `block`.
pub(super) fn has(value: &[u8], block: Block) -> bool {
    pages(value).any(|page| page.blocks.first() == Some(&block))
}

fn write(value: &mut Vec<u8>, blocks: &[Block], closed: bool, holders: impl ExactSizeIterator<Item = [u8; HOLDER]>) {
    value.push(blocks.len() as u8 | if closed { CLOSED } else { 0 });
    value.push(holders.len() as u8);
    value.extend_from_slice(blocks.as_flattened());
    value.extend(holders.flatten());
}

fn lying<'a>(value: &'a [u8], hashes: &[u64]) -> Option<Lying<'a>> {
    let first = hashes.first().map(block)?;
    pages(value).find(|page| page.blocks.first() == Some(&first))
}

/// The pages of a value, up to the first that is cut off.
fn pages(mut value: &[u8]) -> impl Iterator<Item = Lying<'_>> {
    std::iter::from_fn(move || {
        let ([count, holders], rest) = value.split_first_chunk()?;
        let (blocks, rest) = rest.split_at_checked(4 * usize::from(count & !CLOSED))?;
        let (holders, rest) = rest.split_at_checked(HOLDER * usize::from(*holders))?;
        value = rest;
        Some(Lying { closed: count & CLOSED != 0, blocks: blocks.as_chunks().0, holders: holders.as_chunks().0 })
    })
}

impl Lying<'_> {
    fn common(&self, hashes: &[u64]) -> usize {
        self.blocks.iter().zip(hashes).take_while(|(held, hash)| **held == block(hash)).count()
    }
}

impl Holder {
    fn read(bytes: &[u8; HOLDER]) -> Option<Self> {
        let (id, rest) = bytes.split_first_chunk()?;
        let (depth, stamp) = rest.split_first()?;
        let stamp = stamp.first_chunk()?;
        Some(Self { id: u32::from_le_bytes(*id), depth: *depth, stamp: u32::from_le_bytes(*stamp) })
    }

    fn bytes(&self) -> [u8; HOLDER] {
        let [a, b, c, d] = self.id.to_le_bytes();
        let [e, f, g, h] = self.stamp.to_le_bytes();
        [a, b, c, d, self.depth, e, f, g, h]
    }
}
