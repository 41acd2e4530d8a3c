//! JSON as tokens, from bytes that come in any pieces.
//!
//! Nothing is ever refused, and of a string only the beginning is kept.

use memchr::memchr2;

/// Bytes kept of a string: more than the longest name that means something, so that a longer string is none.
pub(crate) const HEAD: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token<'a> {
    /// `{` or `[`, told by `is_object`.
    Open {
        is_object: bool,
    },
    Close,
    Colon,
    Comma,
    /// The first bytes of a string, still escaped: a name written with escapes is none that is known.
    String(&'a [u8]),
    /// A number that counts something: not negative, a fraction is dropped, what does not fit is the largest. Other
    /// numbers and words are no tokens: where they stand nothing is told.
    Count(u32),
}

/// A position in a JSON text, or in several, one after the other.
#[derive(Debug, Default)]
pub(crate) struct Tokenizer {
    state: State,
    head: [u8; HEAD],
    kept: usize,
}

#[derive(Clone, Copy, Debug, Default)]
enum State {
    #[default]
    Between,
    String,
    /// After a backslash in a string.
    Escape,
    Digits(u32),
    Fraction(u32),
    /// A word, or a number that is no count.
    Word,
}

impl Tokenizer {
    /// Gives `each` the tokens, each with the number of bytes that follow it.
    pub(crate) fn push(&mut self, mut bytes: &[u8], mut each: impl FnMut(Token<'_>, usize)) {
        while let Some((&byte, rest)) = bytes.split_first() {
            match self.state {
                State::String => {
                    let length = memchr2(b'"', b'\\', bytes).unwrap_or(bytes.len());
                    let (inside, after) = bytes.split_at_checked(length).unwrap_or_default();
                    self.keep(inside);
                    let Some((end, rest)) = after.split_first() else { return };
                    if *end == b'"' {
                        each(Token::String(self.head.get(..self.kept).unwrap_or_default()), rest.len());
                        self.state = State::Between;
                    } else {
                        self.keep(b"\\");
                        self.state = State::Escape;
                    }
                    bytes = rest;
                }
                State::Escape => {
                    self.state = State::String;
                    bytes = rest;
                }
                State::Digits(_) | State::Fraction(_) | State::Word if ends_literal(byte) => {
                    if let State::Digits(count) | State::Fraction(count) = self.state {
                        each(Token::Count(count), bytes.len());
                    }
                    self.state = State::Between;
                }
                State::Digits(count) => {
                    self.state = match byte {
                        b'0'..=b'9' => State::Digits(digit(count, byte)),
                        b'.' => State::Fraction(count),
                        _ => State::Word,
                    };
                    bytes = rest;
                }
                State::Fraction(_) if byte.is_ascii_digit() => bytes = rest,
                State::Fraction(_) | State::Word => {
                    self.state = State::Word;
                    bytes = rest;
                }
                State::Between => {
                    match byte {
                        b' ' | b'\n' | b'\r' | b'\t' => {}
                        b'"' => {
                            self.kept = 0;
                            self.state = State::String;
                        }
                        b'{' => each(Token::Open { is_object: true }, rest.len()),
                        b'[' => each(Token::Open { is_object: false }, rest.len()),
                        b'}' | b']' => each(Token::Close, rest.len()),
                        b':' => each(Token::Colon, rest.len()),
                        b',' => each(Token::Comma, rest.len()),
                        b'0'..=b'9' => self.state = State::Digits(digit(0, byte)),
                        _ => self.state = State::Word,
                    }
                    bytes = rest;
                }
            }
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = self.head.get_mut(self.kept..).unwrap_or_default();
        self.kept += room.len().min(bytes.len());
        for (kept, byte) in room.iter_mut().zip(bytes) {
            *kept = *byte;
        }
    }
}

fn digit(count: u32, digit: u8) -> u32 {
    count.saturating_mul(10).saturating_add(u32::from(digit - b'0'))
}

fn ends_literal(byte: u8) -> bool {
    matches!(byte, b',' | b':' | b'}' | b']' | b'{' | b'[' | b'"' | b' ' | b'\n' | b'\r' | b'\t')
}
