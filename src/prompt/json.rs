//! Finds values in JSON without building a tree.
//!
//! A [`Cursor`] walks over the bytes once and hands out [`Value`]s: the bytes of a value as they stand, and whether the
//! body ended inside it. There is no recursion, so depth costs nothing; nothing is ever refused, so a malformed document
//! gives what could be understood. Strings are skipped eight bytes at a time, which is most of the work in a chat body.

use std::array;

/// A JSON value as it stands in the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Value<'a> {
    /// Its bytes, quotes and brackets included.
    pub(crate) raw: &'a [u8],
    /// The body ended before the value did.
    pub(crate) cut: bool,
}

/// The inside of a JSON string, still escaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Text<'a> {
    pub(crate) raw: &'a [u8],
    /// The body ended before the closing quote.
    pub(crate) cut: bool,
}

/// The wanted members of an object, each where its key's index says.
pub(crate) struct Fields<'a, const N: usize> {
    pub(crate) found: [Option<Value<'a>>; N],
    /// The object's end was seen.
    pub(crate) whole: bool,
}

/// A position in a JSON text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Value<'a> {
    pub(crate) fn cursor(self) -> Cursor<'a> {
        Cursor { rest: self.raw }
    }

    pub(crate) fn text(self) -> Option<Text<'a>> {
        let inner = self.raw.strip_prefix(b"\"")?;
        let raw = if self.cut { inner } else { inner.strip_suffix(b"\"").unwrap_or(inner) };
        Some(Text { raw, cut: self.cut })
    }

    /// A count: not negative, a fraction is dropped, what does not fit is the largest.
    pub(crate) fn count(self) -> Option<u32> {
        let digits = self.raw.iter().take_while(|byte| byte.is_ascii_digit());
        if self.cut || !self.raw.first()?.is_ascii_digit() {
            return None;
        }
        Some(digits.fold(0u32, |n, digit| n.saturating_mul(10).saturating_add(u32::from(digit - b'0'))))
    }

    pub(crate) fn is_array(self) -> bool {
        self.raw.first() == Some(&b'[')
    }

    pub(crate) fn is_object(self) -> bool {
        self.raw.first() == Some(&b'{')
    }

    /// `{}`, `[]` or `""`: what clients write for a field they do not use. Also when cut before anything came.
    pub(crate) fn is_empty(self) -> bool {
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
    pub(crate) fn new(body: &'a [u8]) -> Self {
        Self { rest: body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body) }
    }

    /// The next byte that is not white space, left in place.
    pub(crate) fn peek(&mut self) -> Option<u8> {
        let blank = self.rest.iter().take_while(|byte| matches!(byte, b' ' | b'\n' | b'\r' | b'\t')).count();
        self.advance(blank);
        self.rest.first().copied()
    }

    /// Steps over the bracket that opens an array or an object.
    pub(crate) fn enter(&mut self) {
        self.peek();
        self.advance(1);
    }

    /// First byte of the next element, left in place; `None` at the end of the array or of the input.
    pub(crate) fn element(&mut self) -> Option<u8> {
        loop {
            match self.peek()? {
                b',' => self.advance(1),
                b']' | b'}' => return None,
                first => return Some(first),
            }
        }
    }

    /// The next value, stepped over. Always moves on unless the input is at its end.
    pub(crate) fn value(&mut self) -> Option<Value<'a>> {
        let first = self.peek()?;
        let before = self.rest;
        let closed = match first {
            b'"' => self.skip_string(),
            b'{' | b'[' => self.skip_container(),
            _ => self.skip_literal(),
        };
        Some(Value { raw: self.since(before), cut: !closed })
    }

    /// Reads the object the cursor is at and steps over it. `index` gives the place of a wanted key; `other` takes the
    /// members whose key has none. Of a repeated key the last one counts, as in the parsers of the model servers; `null`
    /// is the same as absent.
    pub(crate) fn fields<const N: usize>(
        &mut self,
        index: impl Fn(&[u8]) -> Option<usize>,
        mut other: impl FnMut(Text<'a>, Value<'a>),
    ) -> Fields<'a, N> {
        let mut found = array::from_fn(|_| None);
        self.enter();
        while let Some((key, value)) = self.member() {
            let value = Some(value).filter(|value| value.raw != b"null");
            let place = if key.is_plain() { index(key.raw) } else { index(&key.to_vec()) };
            match place.map(|place| found.get_mut(place)) {
                Some(slot) => slot.into_iter().for_each(|slot| *slot = value),
                None => value.into_iter().for_each(|value| other(key, value)),
            }
        }
        Fields { found, whole: self.take().is_some() }
    }

    /// The next member of the object that was entered, stepped over; `None` at the object's end or the input's.
    pub(crate) fn member(&mut self) -> Option<(Text<'a>, Value<'a>)> {
        loop {
            match self.peek()? {
                b'}' | b']' => return None,
                b',' => self.advance(1),
                _ => {
                    let key = self.value().and_then(Value::text);
                    if self.peek() != Some(b':') {
                        continue;
                    }
                    self.advance(1);
                    if matches!(self.peek(), None | Some(b',' | b'}' | b']')) {
                        continue;
                    }
                    if let Some(member) = key.zip(self.value()) {
                        return Some(member);
                    }
                }
            }
        }
    }

    /// One member of the object the cursor is at, which is stepped over.
    pub(crate) fn get(&mut self, key: &[u8]) -> Option<Value<'a>> {
        let [value] = self.fields(|found| (found == key).then_some(0), |_, _| ()).found;
        value
    }

    /// Bytes that are still to come.
    pub(crate) fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// The number the cursor is at, and whether more digits might have followed. Made for token ids: modulo 2^32, without
    /// its sign and fraction.
    pub(crate) fn number(&mut self) -> (u32, bool) {
        if self.rest.first() == Some(&b'-') {
            self.advance(1);
        }
        let (mut number, mut digits) = (0u32, 0);
        for byte in self.rest.iter().take_while(|byte| byte.is_ascii_digit()) {
            number = number.wrapping_mul(10).wrapping_add(u32::from(byte - b'0'));
            digits += 1;
        }
        self.advance(digits);
        let closed = matches!(self.rest.first(), Some(b',' | b']')) || self.skip_literal();
        (number, !closed)
    }

    /// The next byte, white space or not.
    pub(crate) fn take(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    /// The bytes between an earlier `rest` and here.
    fn since(&self, before: &'a [u8]) -> &'a [u8] {
        before.get(..before.len() - self.rest.len()).unwrap_or(before)
    }

    #[inline]
    fn advance(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or_default();
    }

    /// False: the input ended before the closing quote.
    fn skip_string(&mut self) -> bool {
        self.advance(1);
        let mut end = 0;
        while let Some(at) = self.rest.get(end..).and_then(|rest| find(rest, [b'"'])) {
            let (inside, _) = self.rest.split_at_checked(end + at).unwrap_or_default();
            end += at + 1;
            let backslashes = inside.iter().rev().take_while(|byte| **byte == b'\\').count();
            // An odd one escapes the quote; the others escape each other.
            if backslashes % 2 == 0 {
                self.advance(end);
                return true;
            }
        }
        self.rest = &[];
        false
    }

    /// Any closing bracket closes: which one it is makes no difference to where the value ends in valid JSON.
    fn skip_container(&mut self) -> bool {
        let mut depth = 0usize;
        while let Some((byte, rest)) = self.rest.split_first() {
            match byte {
                b'"' => {
                    if !self.skip_string() {
                        return false;
                    }
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            self.rest = rest;
            if depth == 0 {
                return true;
            }
        }
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

/// Where the first byte of `bytes` is that is one of `wanted`, eight at a time.
#[inline]
pub(crate) fn find<const N: usize>(bytes: &[u8], wanted: [u8; N]) -> Option<usize> {
    const LOW: u64 = u64::from_le_bytes([0x01; 8]);
    const HIGH: u64 = u64::from_le_bytes([0x80; 8]);
    let spread = wanted.map(|byte| LOW * u64::from(byte));
    // The top bit of the lowest byte that is wanted; a borrow can mark only bytes above it.
    let hits = |word: &[u8; 8]| {
        let word = u64::from_le_bytes(*word);
        let zero_bytes = |x: u64| x.wrapping_sub(LOW) & !x;
        spread.iter().fold(0, |hits, byte| hits | zero_bytes(word ^ byte)) & HIGH
    };
    let (words, tail) = bytes.as_chunks::<8>();
    let (fours, rest) = words.as_chunks::<4>();
    let blank = 4 * fours.iter().take_while(|four| four.iter().fold(0, |all, word| all | hits(word)) == 0).count();
    let last = words.get(blank..).unwrap_or(rest);
    for (at, word) in last.iter().enumerate() {
        let hit = hits(word);
        if hit != 0 {
            return Some((blank + at) * 8 + hit.trailing_zeros() as usize / 8);
        }
    }
    let in_tail = tail.iter().position(|byte| wanted.contains(byte))?;
    Some(words.len() * 8 + in_tail)
}
