//! What a JSON string says: its escapes resolved, piece by piece, without a copy.

use super::json::{Text, find};

/// The one byte no UTF-8 text contains. The canonical form frames its parts with it, so [`Text::pieces`] hands it out
/// alone, for the framing to be told from a text that has it all the same.
pub(super) const MARK: u8 = 0xFF;

impl Text<'_> {
    /// Nothing in it is escaped.
    pub(crate) fn is_plain(self) -> bool {
        !self.raw.contains(&b'\\')
    }

    pub(crate) fn to_vec(self) -> Vec<u8> {
        let mut whole = Vec::with_capacity(self.raw.len());
        self.pieces(|piece| whole.extend_from_slice(piece));
        whole
    }

    /// Calls `sink` with the text in order. Bytes that are not UTF-8 and surrogates without a partner are bytes like any
    /// other. Of a text that was cut, an escape at the end that more bytes might have completed is left out, so what
    /// comes is always the start of what the whole text would have given.
    #[inline]
    pub(super) fn pieces(self, mut sink: impl FnMut(&[u8])) {
        let mut rest = self.raw;
        while let Some(at) = find(rest, [b'\\', MARK]) {
            let (plain, from) = rest.split_at_checked(at).unwrap_or((rest, &[]));
            if !plain.is_empty() {
                sink(plain);
            }
            let simple = match from {
                [MARK, ..] => Some((MARK, 1)),
                [_, escape, ..] => simple(*escape).map(|byte| (byte, 2)),
                _ => None,
            };
            let length = match simple {
                Some((byte, length)) => {
                    sink(&[byte]);
                    length
                }
                None => {
                    let Some(escape) = Escape::read(from, self.cut) else { return };
                    escape.emit(&mut sink);
                    escape.length
                }
            };
            rest = from.get(length..).unwrap_or_default();
        }
        if !rest.is_empty() {
            sink(rest);
        }
    }
}

/// What a backslash and this byte stand for, where that is one byte.
#[inline]
fn simple(escape: u8) -> Option<u8> {
    Some(match escape {
        b'"' | b'\\' | b'/' => escape,
        b'n' => b'\n',
        b't' => b'\t',
        b'r' => b'\r',
        b'b' => 0x08,
        b'f' => 0x0C,
        _ => return None,
    })
}

/// What an escape stands for, and how many bytes it took.
struct Escape {
    code: u32,
    length: usize,
}

impl Escape {
    /// Any but the simple ones. `None`: cut off. What is no escape stands for its own backslash.
    #[cold]
    fn read(bytes: &[u8], cut: bool) -> Option<Self> {
        let itself = Some(Self { code: u32::from(b'\\'), length: 1 });
        let Some(high) = unit(bytes) else {
            let unfinished = bytes.len() < 6 && matches!(bytes.get(1), None | Some(b'u'));
            return if cut && unfinished { None } else { itself };
        };
        if !(0xD800..0xDC00).contains(&high) {
            return Some(Self { code: high, length: 6 });
        }
        let next = bytes.get(6..).unwrap_or_default();
        match unit(next).filter(|low| (0xDC00..0xE000).contains(low)) {
            Some(low) => Some(Self { code: 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00), length: 12 }),
            None if cut && next.len() < 6 => None,
            None => Some(Self { code: high, length: 6 }),
        }
    }

    fn emit(&self, sink: &mut impl FnMut(&[u8])) {
        match char::from_u32(self.code) {
            Some(char) => sink(char.encode_utf8(&mut [0; 4]).as_bytes()),
            // A surrogate without a partner, in the three bytes its number would have.
            None => sink(&[0xED, 0x80 | (self.code >> 6 & 0x3F) as u8, 0x80 | (self.code & 0x3F) as u8]),
        }
    }
}

/// The number in `\uXXXX`.
fn unit(bytes: &[u8]) -> Option<u32> {
    let digits = bytes.strip_prefix(b"\\u")?.get(..4)?;
    digits.iter().try_fold(0, |number, digit| Some(number * 16 + char::from(*digit).to_digit(16)?))
}
