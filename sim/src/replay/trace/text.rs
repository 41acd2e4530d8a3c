//! Prompts without words: a prompt is a row of segments, and what two prompts share is the segments they begin with.

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// A piece of text that occurs as a whole: a system prompt, a message, an answer, a trace's block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Equal ids (of equal length) are equal texts.
    pub id: u64,
    /// Its length.
    pub tokens: u32,
}

impl Segment {
    /// Tokens of a row of segments.
    pub fn total(segments: &[Self]) -> u32 {
        segments.iter().fold(0, |sum, segment| sum.saturating_add(segment.tokens))
    }
}

/// Chained hash of each full block of `block` tokens: equal leading segments give equal leading hashes. Never 0.
pub(super) fn block_hashes(segments: &[Segment], block: u32) -> Vec<u64> {
    let block = block.max(1);
    let mut hashes = Vec::with_capacity((Segment::total(segments) / block) as usize);
    let (mut chain, mut room) = (0, block);
    for segment in segments {
        let mut offset = 0;
        while offset < segment.tokens {
            let piece = room.min(segment.tokens - offset);
            let mut bytes = [0; 16];
            let (id, place) = bytes.split_at_mut(8);
            id.copy_from_slice(&segment.id.to_le_bytes());
            place.copy_from_slice(&(u64::from(offset) << 32 | u64::from(piece)).to_le_bytes());
            chain = xxh3_64_with_seed(&bytes, chain).max(1);
            offset += piece;
            room -= piece;
            if room == 0 {
                hashes.push(chain);
                room = block;
            }
        }
    }
    hashes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hashes(segments: &[(u64, u32)]) -> Vec<u64> {
        let segments: Vec<_> = segments.iter().map(|(id, tokens)| Segment { id: *id, tokens: *tokens }).collect();
        block_hashes(&segments, 64)
    }

    #[test]
    fn prompts_share_the_blocks_of_the_segments_they_begin_with() {
        let (a, b) = (hashes(&[(1, 640), (2, 128)]), hashes(&[(1, 640), (3, 128)]));
        assert_eq!(a.len(), 12);
        assert_eq!(a[..10], b[..10]);
        assert!(a[10] != b[10] && a[11] != b[11]);
    }

    #[test]
    fn only_full_blocks_have_a_hash_and_a_block_may_span_segments() {
        assert!(hashes(&[(1, 63)]).is_empty());
        let grown = hashes(&[(1, 63), (2, 65)]);
        assert_eq!(grown.len(), 2);
        assert_eq!(grown, hashes(&[(1, 63), (2, 65), (3, 60)]));
        assert_ne!(grown[0], hashes(&[(1, 64)])[0]);
    }
}
