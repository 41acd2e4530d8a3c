//! The client's name of the model, put back in an answer as it flows by.
//!
//! | Dialect | where |
//! |---|---|
//! | OpenAI chat completions, completions, embeddings | `model` |
//! | OpenAI responses | `model`; streaming: `response.model` |
//! | Anthropic messages | `model`; streaming: `message.model` |
//!
//! A name is replaced only there, and only if it is the one that the request was given. All else goes on as it came, byte
//! by byte; of an answer cut inside such a name, its beginning waits for the rest, which is all that is ever held back.
//! Whatever the cuts, the same bytes come out.

use super::quoted;
use crate::prompt::json::Text;
use crate::usage::Framing;
use crate::usage::event_stream::EventStream;
use crate::usage::json::{Token, Tokenizer};

/// Bytes that JSON may take for one of a name: `\u002f`.
const MOST_ESCAPED: usize = 6;

/// Puts the name back in one answer.
#[derive(Debug)]
pub struct Restorer {
    /// `None` for a JSON body.
    events: Option<EventStream>,
    json: Tokenizer,
    place: Place,
    /// The server's name of the model.
    target: Box<[u8]>,
    /// The client's, as JSON.
    model: Vec<u8>,
    /// The beginning of a string where the name may stand, with its quote; not longer than a name can be.
    pub(super) held: Vec<u8>,
}

impl Restorer {
    /// For an answer that has not begun. `target` is the name in it, `model` the client's.
    pub fn new(framing: Framing, target: &[u8], model: &[u8]) -> Self {
        Self {
            events: (framing == Framing::EventStream).then(EventStream::default),
            json: Tokenizer::default(),
            place: Place::default(),
            target: target.into(),
            model: quoted(model),
            held: Vec::new(),
        }
    }

    /// Takes the next bytes of the answer. Returns what goes on in their place, perhaps nothing for now; `None`: they
    /// themselves.
    pub fn push(&mut self, chunk: &[u8]) -> Option<Vec<u8>> {
        if chunk.is_empty() {
            return None;
        }
        let Self { events, json, place, target, model, held } = self;
        let bytes = std::mem::take(held);
        let mut out = Output { chunk, begun: !bytes.is_empty(), bytes, copied: 0, held };
        // Once in the code, though called from two places.
        let mut read = |data: Option<&[u8]>, follow: usize| match data {
            Some(data) => out.data(json, place, (target, model), data, follow),
            // Whatever an event left open is not the next one's.
            None => (*json, *place) = (Tokenizer::default(), Place::default()),
        };
        match events {
            None => read(Some(chunk), 0),
            Some(events) => events.push(chunk, &mut read),
        }
        out.finish()
    }

    /// What was held back of an answer that broke off.
    pub fn finish(self) -> Vec<u8> {
        self.held
    }
}

/// What becomes of a chunk.
struct Output<'c, 'h> {
    chunk: &'c [u8],
    /// So much of the chunk is in `bytes`, or was replaced.
    copied: usize,
    /// Begins with what an earlier chunk left.
    bytes: Vec<u8>,
    /// What that is goes on at the start of this chunk.
    begun: bool,
    /// For the next chunk.
    held: &'h mut Vec<u8>,
}

impl Output<'_, '_> {
    /// A part of the chunk that is JSON, `follow` bytes before its end.
    fn data(
        &mut self,
        json: &mut Tokenizer,
        place: &mut Place,
        (target, model): (&[u8], &[u8]),
        data: &[u8],
        follow: usize,
    ) {
        // Only the first part of a chunk goes on where the chunk before broke off.
        let mut begun = std::mem::take(&mut self.begun);
        let at = self.chunk.len().saturating_sub(follow + data.len());
        let mut from = 0;
        json.push(data, |token, left| {
            let here = data.len().saturating_sub(left);
            let waited = place.waits;
            place.take(token);
            if waited && matches!(token, Token::String(_)) {
                let value = data.get(from..here).unwrap_or_default();
                let is_target = match begun {
                    true => names(&[&self.bytes, value].concat(), target),
                    false => names(value.trim_ascii_start(), target),
                };
                if is_target {
                    let start = at + here - value.trim_ascii_start().len();
                    if begun {
                        self.bytes.clear()
                    } else {
                        self.copy_to(start)
                    }
                    self.bytes.extend_from_slice(model);
                    self.copied = at + here;
                }
            }
            begun = false;
            from = here;
        });
        if !place.waits {
            return;
        }
        let rest = data.get(from..).unwrap_or_default();
        let rest = if begun { rest } else { rest.trim_ascii_start() };
        if rest.is_empty() && !begun {
            return;
        }
        let length = if begun { self.bytes.len() + rest.len() } else { rest.len() };
        // A line's end within a string is no JSON.
        let may_be = (begun || rest.first() == Some(&b'"')) && length <= longest(target) && follow == 0;
        if may_be {
            self.copy_to(self.chunk.len() - rest.len());
            if begun {
                *self.held = std::mem::take(&mut self.bytes);
            }
            self.held.extend_from_slice(rest);
            self.copied = self.chunk.len();
        } else {
            place.waits = false;
        }
    }

    fn copy_to(&mut self, end: usize) {
        self.bytes.extend_from_slice(self.chunk.get(self.copied..end).unwrap_or_default());
        self.copied = end;
    }

    fn finish(mut self) -> Option<Vec<u8>> {
        if self.copied == 0 && self.bytes.is_empty() {
            return None;
        }
        self.copy_to(self.chunk.len());
        Some(self.bytes)
    }
}

/// Whether `string`, a JSON string with its quotes, says `target`.
fn names(string: &[u8], target: &[u8]) -> bool {
    let raw = string.strip_prefix(b"\"").and_then(|inside| inside.strip_suffix(b"\""));
    raw.is_some_and(|raw| {
        raw == target
            || string.len() <= longest(target) && raw.contains(&b'\\') && Text { raw, cut: false }.to_vec() == target
    })
}

/// The most bytes of a JSON string that says `target`.
fn longest(target: &[u8]) -> usize {
    MOST_ESCAPED * target.len() + 2
}

/// Where in an answer.
#[derive(Debug, Default)]
struct Place {
    /// Open containers.
    depth: u32,
    /// The outermost is an object.
    in_answer: bool,
    /// The next one in it is the object `response` or `message`.
    in_envelope: bool,
    key: Key,
    after_colon: bool,
    /// The value that comes next is the name of a model.
    waits: bool,
}

/// What a member's name says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Key {
    Model,
    Envelope,
    #[default]
    Other,
}

impl Place {
    fn take(&mut self, token: Token<'_>) {
        self.waits = false;
        let can_name = match self.depth {
            1 => self.in_answer,
            2 => self.in_envelope,
            _ => false,
        };
        match token {
            Token::Colon => {
                self.after_colon = true;
                self.waits = self.key == Key::Model;
                return;
            }
            Token::String(name) if can_name && !self.after_colon => {
                self.key = match name {
                    b"model" => Key::Model,
                    b"response" | b"message" => Key::Envelope,
                    _ => Key::Other,
                };
                return;
            }
            Token::Open { is_object } => {
                match self.depth {
                    0 => self.in_answer = is_object,
                    1 => {
                        self.in_envelope = is_object && self.in_answer && self.after_colon && self.key == Key::Envelope;
                    }
                    _ => {}
                }
                self.depth = self.depth.saturating_add(1);
            }
            Token::Close => self.depth = self.depth.saturating_sub(1),
            Token::String(_) | Token::Count(_) | Token::Comma => {}
        }
        (self.key, self.after_colon) = (Key::Other, false);
    }
}
