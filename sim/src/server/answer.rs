//! The generated text: it names the request it answers, then goes on with filler.

use std::fmt::Write;

use super::tokens::CHARS;

/// Text of an answer, a fixed number of ASCII characters per token.
#[derive(Debug)]
pub(crate) struct Answer(String);

impl Answer {
    /// `tokens` tokens that begin with the request's id (or `-`), the number of body bytes and their hash.
    pub(crate) fn new(request_id: &str, body_bytes: usize, body_fnv: u64, prompt: usize, tokens: u32) -> Self {
        let id = if request_id.is_empty() { "-" } else { request_id };
        let mut text: String = id.chars().map(|c| if c.is_ascii_graphic() { c } else { '?' }).collect();
        let _ = write!(text, " {body_bytes} {body_fnv:016x} {prompt} ");
        let length = tokens as usize * CHARS;
        while text.len() < length {
            let _ = write!(text, "w{} ", text.len());
        }
        text.truncate(length);
        Self(text)
    }

    /// All of it.
    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    /// The first `tokens` tokens.
    pub(crate) fn first(&self, tokens: usize) -> &str {
        self.0.get(..tokens * CHARS).unwrap_or(&self.0)
    }

    /// The token at this position, from 0.
    pub(crate) fn token(&self, at: usize) -> &str {
        self.0.get(at * CHARS..(at + 1) * CHARS).unwrap_or("")
    }
}

/// FNV-1a, 64 bits: a client can compute it in three lines.
pub(crate) fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
