//! How many tokens an answer took, read as it flows by.
//!
//! Model servers tell it in the answer itself: at the end of a JSON body, or in one or all events of a stream. Nothing
//! is kept or changed here. The bytes go, however they are split, through three small machines: `event_stream` finds the
//! data of server-sent events, `json` makes tokens of it, and `answer` knows at which places a count means something. So
//! memory is a few dozen bytes whatever the answer's length, and a text that looks like JSON is still only a string.
//!
//! | Dialect | where |
//! |---|---|
//! | OpenAI chat completions, completions, embeddings | `usage` |
//! | OpenAI responses | `usage`; streaming: `response.usage` of `response.completed` |
//! | Anthropic messages | `usage`; streaming: `message.usage` of `message_start`, `usage` of `message_delta` |
//! | SGLang's `/generate` | `meta_info`; of an array of answers the sum |
//!
//! `null` says nothing. A count told again, as by servers that put the sum so far in each chunk, replaces the one before,
//! each for itself: the prompt of `message_start` stays when `message_delta` tells the output only.
//!
//! Known gap: `/generate` streaming several prompts at once tells each of them alone, and the last one told is taken.

mod answer;
pub(crate) mod event_stream;
pub(crate) mod json;
#[cfg(test)]
mod tests;

use self::answer::Answer;
use self::event_stream::EventStream;
use self::json::Tokenizer;

/// The tokens of one answer. `None`: not told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the prompt, cached ones included.
    pub prompt_tokens: Option<u32>,
    /// Tokens of the prompt that the engine found in its cache.
    pub cached_tokens: Option<u32>,
    /// Tokens generated.
    pub output_tokens: Option<u32>,
    /// Events that brought text, reasoning or a part of a tool call: an estimate of the output where nothing is told,
    /// and a low one where a chunk holds several tokens. 0 for a JSON body and for `/generate`, which always tells.
    pub events: u32,
}

/// How an answer is framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// Server-sent events.
    EventStream,
    /// One JSON text.
    Json,
}

impl Framing {
    /// The framing that an answer's headers name. `None`: nothing here can read it, as when it is compressed.
    pub fn of_headers(content_type: &[u8], content_encoding: Option<&[u8]>) -> Option<Self> {
        if content_encoding.is_some_and(|coding| !coding.trim_ascii().eq_ignore_ascii_case(b"identity")) {
            return None;
        }
        let kinds = [(&b"text/event-stream"[..], Self::EventStream), (b"application/json", Self::Json)];
        let named = kinds.into_iter().find(|(media_type, _)| {
            let (named, rest) = content_type.split_at_checked(media_type.len()).unwrap_or_default();
            named.eq_ignore_ascii_case(media_type) && matches!(rest.first(), None | Some(b';' | b' '))
        });
        named.map(|(_, framing)| framing)
    }
}

/// Reads the usage out of one answer.
#[derive(Debug)]
pub struct UsageReader {
    /// `None` for a JSON body.
    events: Option<EventStream>,
    json: Tokenizer,
    answer: Answer,
    started: bool,
}

impl UsageReader {
    /// A reader for an answer that has not begun.
    pub fn new(framing: Framing) -> Self {
        let events = (framing == Framing::EventStream).then(EventStream::default);
        Self { events, json: Tokenizer::default(), answer: Answer::default(), started: false }
    }

    /// Reads the next bytes of the answer.
    pub fn push(&mut self, bytes: &[u8]) {
        self.started |= !bytes.is_empty();
        let Self { events, json, answer, .. } = self;
        // Once in the code, though called from two places.
        let mut read = |data: Option<&[u8]>, _: usize| match data {
            Some(data) => json.push(data, |token, _| answer.take(token)),
            // Whatever an event left open is not the next one's.
            None => {
                *json = Tokenizer::default();
                answer.cut();
            }
        };
        match events {
            None => read(Some(bytes), 0),
            Some(events) => events.push(bytes, &mut read),
        }
    }

    /// Whether the prompt is done and the first token came.
    ///
    /// In a stream that is the first event with data, also a chat's first chunk, which has a role and no text: servers
    /// send it together with the first token or right before. Comments and the events that announce a response before
    /// the prompt was looked at (`response.created`, `response.queued`, `response.in_progress`, `ping`) are none, nor is
    /// an error. A JSON body comes when all tokens are there: true from its first byte, which tells nothing of the time
    /// to the first token.
    pub fn first_token_seen(&self) -> bool {
        match self.events {
            Some(_) => self.answer.first_token_seen(),
            None => self.started,
        }
    }

    /// What was told up to here. An answer that broke off gives what had come.
    pub fn finish(self) -> Usage {
        let usage = self.answer.usage();
        if self.events.is_some() { usage } else { Usage { events: 0, ..usage } }
    }
}
