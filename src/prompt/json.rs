//! Finds values in JSON without building a tree.
//!
//! A [`Cursor`] walks over the bytes once and hands out [`Value`]s: the bytes of a value as they stand, and whether the
//! body ended inside it. There is no recursion, so depth costs nothing; nothing is ever refused, so a malformed document
//! gives what could be understood. Strings are skipped eight bytes at a time, which is most of the work in a chat body.

use std::array;

/// A JSON value as it stands in the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Value<'a> {
    /// Its bytes, quotes and brackets included.
    pub(super) raw: &'a [u8],
    /// The body ended before the value did.
    pub(super) cut: bool,
}

/// The inside of a JSON string, still escaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Text<'a> {
    pub(super) raw: &'a [u8],
    /// The body ended before the closing quote.
    pub(super) cut: bool,
}

/// The wanted members of an object, each where its key's index says.
pub(super) struct Fields<'a, const N: usize> {
    pub(super) found: [Option<Value<'a>>; N],
    /// The object's end was seen.
    pub(super) whole: bool,
}

/// A position in a JSON text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Value<'a> {
    pub(super) fn cursor(self) -> Cursor<'a> {
        Cursor { rest: self.raw }
    }

    pub(super) fn text(self) -> Option<Text<'a>> {
        let inner = self.raw.strip_prefix(b"\"")?;
        let raw = if self.cut { inner } else { inner.strip_suffix(b"\"").unwrap_or(inner) };
        Some(Text { raw, cut: self.cut })
    }

    /// A count: not negative, a fraction is dropped, what does not fit is the largest.
    pub(super) fn count(self) -> Option<u32> {
        let digits = self.raw.iter().take_while(|byte| byte.is_ascii_digit());
        if self.cut || !self.raw.first()?.is_ascii_digit() {
            return None;
        }
        Some(digits.fold(0u32, |n, digit| n.saturating_mul(10).saturating_add(u32::from(digit - b'0'))))
    }

    pub(super) fn is_array(self) -> bool {
        self.raw.first() == Some(&b'[')
    }

    pub(super) fn is_object(self) -> bool {
        self.raw.first() == Some(&b'{')
    }

    /// `{}`, `[]` or `""`: what clients write for a field they do not use. Also when cut before anything came.
    pub(super) fn is_empty(self) -> bool {
        let Some((bracket, inside)) = self.raw.split_first() else { return true };
        match bracket {
            b'"' => matches!(inside, b"" | b"\""),
            b'{' | b'[' => matches!(inside.trim_ascii(), b"" | b"}" | b"]"),
            _ => false,
        }
    }
}

impl<'a> Cursor<'a> {
    /// At the start of `body`; a byte order mark is no part of the text.
    pub(super) fn new(body: &'a [u8]) -> Self {
        Self { rest: body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body) }
    }

    /// The next byte that is not white space, left in place.
    pub(super) fn peek(&mut self) -> Option<u8> {
        let blank = self.rest.iter().take_while(|byte| matches!(byte, b' ' | b'\n' | b'\r' | b'\t')).count();
        self.advance(blank);
        self.rest.first().copied()
    }

    /// Steps over the bracket that opens an array or an object.
    pub(super) fn enter(&mut self) {
        self.peek();
        self.advance(1);
    }

    /// First byte of the next element, left in place; `None` at the end of the array or of the input.
    pub(super) fn element(&mut self) -> Option<u8> {
        loop {
            match self.peek()? {
                b',' => self.advance(1),
                b']' | b'}' => return None,
                first => return Some(first),
            }
        }
    }

    /// The next value, stepped over. Always moves on unless the input is at its end.
    pub(super) fn value(&mut self) -> Option<Value<'a>> {
        let first = self.peek()?;
        let before = self.rest;
        let closed = match first {
            b'"' => self.skip_string(),
            b'{' | b'[' => self.skip_container(),
            _ => self.skip_literal(),
        };
        Some(Value { raw: self.since(before), cut: !closed })
    }

    /// Reads the object the cursor is at and steps over it. `index` gives the place of a wanted key. Of a repeated key
    /// the last one counts, as in the parsers of the model servers; `null` is the same as absent.
    pub(super) fn fields<const N: usize>(&mut self, index: impl Fn(&[u8]) -> Option<usize>) -> Fields<'a, N> {
        let mut found = array::from_fn(|_| None);
        self.enter();
        loop {
            match self.peek() {
                None => return Fields { found, whole: false },
                Some(b'}' | b']') => {
                    self.advance(1);
                    return Fields { found, whole: true };
                }
                Some(b',') => self.advance(1),
                Some(_) => {
                    let key = self.value().and_then(Value::text);
                    if self.peek() != Some(b':') {
                        continue;
                    }
                    self.advance(1);
                    if matches!(self.peek(), None | Some(b',' | b'}' | b']')) {
                        continue;
                    }
                    let value = self.value().filter(|value| value.raw != b"null");
                    let place = key.and_then(|key| if key.is_plain() { index(key.raw) } else { index(&key.to_vec()) });
                    if let Some(slot) = place.and_then(|place| found.get_mut(place)) {
                        *slot = value;
                    }
                }
            }
        }
    }

    /// The next byte, white space or not.
    pub(super) fn take(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The bytes between an earlier `rest` and here.
    pub(super) fn since(&self, before: &'a [u8]) -> &'a [u8] {
        before.get(..before.len() - self.rest.len()).unwrap_or(before)
    }

    fn advance(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or_default();
    }

    /// False: the input ended before the closing quote.
    fn skip_string(&mut self) -> bool {
        self.advance(1);
        while let Some(at) = find(self.rest, b'"', b'\\') {
            let quote = self.rest.get(at) == Some(&b'"');
            self.advance(if quote { at + 1 } else { at + 2 });
            if quote {
                return true;
            }
        }
        self.rest = &[];
        false
    }

    /// Any closing bracket closes: which one it is makes no difference to where the value ends in valid JSON.
    fn skip_container(&mut self) -> bool {
        let mut depth = 0usize;
        while let Some(at) = self.rest.iter().position(|byte| matches!(byte, b'"' | b'{' | b'[' | b'}' | b']')) {
            match self.rest.get(at) {
                Some(b'"') => {
                    self.advance(at);
                    if !self.skip_string() {
                        return false;
                    }
                    continue;
                }
                Some(b'{' | b'[') => depth += 1,
                _ => depth -= 1,
            }
            self.advance(at + 1);
            if depth == 0 {
                return true;
            }
        }
        self.rest = &[];
        false
    }

    /// A number, a word or rubbish: up to the next delimiter. At the end of the input more might have followed.
    fn skip_literal(&mut self) -> bool {
        self.advance(1);
        let delimiter = |byte: &u8| matches!(byte, b',' | b':' | b'}' | b']' | b'"' | b' ' | b'\n' | b'\r' | b'\t');
        let length = self.rest.iter().position(delimiter).unwrap_or(self.rest.len());
        self.advance(length);
        !self.rest.is_empty()
    }
}

/// Where the first of two bytes is, a word at a time.
pub(super) fn find(bytes: &[u8], one: u8, other: u8) -> Option<usize> {
    const LOW: u64 = u64::from_le_bytes([0x01; 8]);
    const HIGH: u64 = u64::from_le_bytes([0x80; 8]);
    let (one_eight, other_eight) = (LOW * u64::from(one), LOW * u64::from(other));
    let (words, tail) = bytes.as_chunks::<8>();
    for (at, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let (x, y) = (word ^ one_eight, word ^ other_eight);
        // The top bit of the lowest zero byte of x or y; a borrow can mark only bytes above it.
        let hit = ((x.wrapping_sub(LOW) & !x) | (y.wrapping_sub(LOW) & !y)) & HIGH;
        if hit != 0 {
            return Some(at * 8 + hit.trailing_zeros() as usize / 8);
        }
    }
    let in_tail = tail.iter().position(|byte| *byte == one || *byte == other)?;
    Some(words.len() * 8 + in_tail)
}
