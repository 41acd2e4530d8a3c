//! The canonical form: one order for the parts of a prompt, whatever order its JSON had.
//!
//! What the model server will render comes out as one run of bytes: tools, system, messages; in a message role, content
//! and then the rest. Parts are framed with marks that no text can contain, so `role` and `content` cannot be confused
//! with other ways of dividing the same letters, and nothing depends on what comes later, so a conversation that grows
//! keeps all it had. The three chat dialects share the form: the same conversation is the same chain.
//!
//! A body that was cut must give the start of what the whole body gives. So in an object that was cut only the leading
//! members of the canonical order count, and only while none of them is missing: whatever was not seen might have come
//! first. From there on the chain is frozen: the rest of what was read only counts as tokens.

use super::blocks::{BYTES_PER_TOKEN, Chainer};
use super::json::{Cursor, Fields, Value};
use super::media;

/// How a member enters the form.
#[derive(Clone, Copy, PartialEq)]
enum Shape {
    /// The text itself, without a mark: content that is one text part is the same as that text.
    Bare,
    /// A text, or any JSON without its white space.
    Plain,
    /// What sort of part or message it is; the sorts that mean plain text are as good as absent.
    Kind,
    /// A text or a list of parts.
    Content,
    /// A tool call or a list of them.
    Calls,
    /// Something with a URL or data inside.
    Media,
}

use Shape::{Bare, Calls, Content, Kind, Media, Plain};

struct Table<const N: usize> {
    /// In canonical order. Appending keeps old hashes.
    members: [(&'static [u8], Shape); N],
    /// Of an object that was cut, the members that may count.
    lead: usize,
    /// Mark of the first member; each table has marks of its own.
    tag: u8,
}

/// A message of a chat, or an item of a Responses input.
static MESSAGE: Table<15> = Table {
    members: [
        (b"role", Plain),
        (b"content", Content),
        (b"type", Kind),
        (b"name", Plain),
        (b"tool_calls", Calls),
        (b"tool_call_id", Plain),
        (b"function_call", Calls),
        (b"reasoning_content", Plain),
        (b"reasoning", Plain),
        (b"refusal", Plain),
        (b"call_id", Plain),
        (b"arguments", Plain),
        (b"output", Content),
        (b"summary", Content),
        (b"encrypted_content", Plain),
    ],
    lead: 2,
    tag: b'a',
};

/// A part of a content: OpenAI's and Anthropic's kinds, and what vLLM and SGLang add.
static PART: Table<21> = Table {
    members: [
        (b"text", Bare),
        (b"type", Kind),
        (b"thinking", Plain),
        (b"refusal", Plain),
        (b"image_url", Media),
        (b"input_audio", Media),
        (b"audio_url", Media),
        (b"video_url", Media),
        (b"file", Media),
        (b"source", Media),
        (b"file_data", Media),
        (b"file_url", Media),
        (b"file_id", Media),
        (b"image", Media),
        (b"audio", Media),
        (b"video", Media),
        (b"id", Plain),
        (b"name", Plain),
        (b"input", Plain),
        (b"tool_use_id", Plain),
        (b"content", Content),
    ],
    lead: 1,
    tag: b'A',
};

/// A tool call.
static CALL: Table<5> = Table {
    members: [(b"id", Plain), (b"type", Plain), (b"function", Calls), (b"name", Plain), (b"arguments", Plain)],
    lead: 0,
    tag: b'0',
};

/// Objects inside objects that are put in order; deeper ones go in as they stand. A tool result with parts needs four.
const MAX_DEPTH: u32 = 8;

/// Claude Code puts a block that changes with each request before its system prompt; model servers drop it.
const BILLING_HEADER: &[u8] = b"x-anthropic-billing-header";

/// Writes prompts in the canonical form.
pub(super) struct Form<'b> {
    pub(super) chainer: Chainer<'b>,
    seed: u64,
    depth: u32,
    /// The body ended inside a picture or the like: what is missing is mostly data, not text.
    pub(super) cut_in_media: bool,
}

impl<'b> Form<'b> {
    pub(super) fn new(chainer: Chainer<'b>, seed: u64) -> Self {
        Self { chainer, seed, depth: 0, cut_in_media: false }
    }

    /// A part of the request beside the conversation.
    pub(super) fn section(&mut self, tag: u8, value: Option<Value<'_>>) {
        let Some(value) = value else { return };
        if !value.is_empty() {
            self.chainer.mark(tag);
            self.plain(value);
            self.chainer.mark(b')');
        }
        self.freeze_if(value.cut);
    }

    /// A message whose role the dialect implies.
    pub(super) fn message(&mut self, role: &[u8], content: Value<'_>) {
        self.chainer.mark(b'{');
        self.chainer.mark(MESSAGE.tag);
        self.chainer.push(role);
        if !content.is_empty() {
            self.member(content, Content, MESSAGE.tag + 1);
        }
        self.freeze_if(content.cut);
        self.chainer.mark(b'}');
    }

    /// A list of messages; a text is what the user says.
    pub(super) fn conversation(&mut self, messages: Value<'_>) {
        if !messages.is_array() {
            return self.message(b"user", messages);
        }
        let mut cursor = messages.cursor();
        cursor.enter();
        while let Some(first) = cursor.element() {
            if first == b'{' {
                self.record(&mut cursor, &MESSAGE);
            } else if let Some(value) = cursor.value() {
                self.message(b"user", value);
            }
        }
        self.freeze_if(messages.cut);
    }

    /// An object in its place in a list, framed.
    fn record<const N: usize>(&mut self, cursor: &mut Cursor<'_>, table: &Table<N>) {
        self.chainer.mark(b'{');
        let before = cursor.rest();
        let fields = table.read(cursor);
        self.members(fields, table, cursor.since(before));
        self.chainer.mark(b'}');
    }

    fn members<const N: usize>(&mut self, fields: Fields<'_, N>, table: &Table<N>, raw: &[u8]) {
        let mut known = false;
        let tagged = table.members.iter().zip(table.tag..);
        for (place, (value, ((_, shape), tag))) in fields.found.into_iter().zip(tagged).enumerate() {
            self.freeze_if(!fields.whole && (value.is_none() || place >= table.lead));
            let Some(value) = value else { continue };
            known |= *shape != Kind;
            if !value.is_empty() {
                self.member(value, *shape, tag);
            }
            self.freeze_if(value.cut);
        }
        if !known && fields.whole {
            self.unknown(Value { raw, cut: false });
        }
    }

    fn member(&mut self, value: Value<'_>, shape: Shape, tag: u8) {
        if shape == Kind && is_text_kind(value.raw) {
            return;
        }
        if shape != Bare {
            self.chainer.mark(tag);
        }
        self.depth += 1;
        match shape {
            _ if self.depth > MAX_DEPTH => self.plain(value),
            Bare | Plain | Kind => self.plain(value),
            Content => self.content(value),
            Calls => self.calls(value),
            Media => self.media(value),
        }
        self.depth -= 1;
    }

    /// A text, or parts with a mark between them.
    fn content(&mut self, content: Value<'_>) {
        if content.is_object() {
            let fields = PART.read(&mut content.cursor());
            return self.members(fields, &PART, content.raw);
        }
        if !content.is_array() {
            return self.plain(content);
        }
        let nested = self.depth > 1;
        if nested {
            self.chainer.mark(b'[');
        }
        let mut cursor = content.cursor();
        cursor.enter();
        let mut first = true;
        while let Some(byte) = cursor.element() {
            let before = cursor.rest();
            let part = (byte == b'{').then(|| PART.read(&mut cursor));
            if first && part.as_ref().is_some_and(is_billing_header) {
                continue;
            }
            if !std::mem::take(&mut first) {
                self.chainer.mark(b',');
            }
            match part {
                Some(fields) => self.members(fields, &PART, cursor.since(before)),
                None => cursor.value().into_iter().for_each(|value| self.plain(value)),
            }
        }
        if nested {
            self.chainer.mark(b']');
        }
        self.freeze_if(content.cut);
    }

    fn calls(&mut self, calls: Value<'_>) {
        let mut cursor = calls.cursor();
        if calls.is_object() {
            return self.record(&mut cursor, &CALL);
        }
        if !calls.is_array() {
            return self.plain(calls);
        }
        cursor.enter();
        while let Some(first) = cursor.element() {
            if first == b'{' {
                self.record(&mut cursor, &CALL);
            } else if let Some(value) = cursor.value() {
                self.plain(value);
            }
        }
        self.freeze_if(calls.cut);
    }

    /// An object with no member that is known: a kind of part that is newer than this table.
    fn unknown(&mut self, value: Value<'_>) {
        if media::is_bulky(value.raw) {
            self.media(value);
        } else {
            self.plain(value);
        }
    }

    /// A text as it is, anything else token by token.
    pub(super) fn plain(&mut self, value: Value<'_>) {
        if let Some(text) = value.text() {
            return self.chainer.text(text);
        }
        let mut cursor = value.cursor();
        while let Some(first) = cursor.peek() {
            if matches!(first, b'{' | b'}' | b'[' | b']' | b',' | b':') {
                cursor.take();
                self.chainer.push(&[first]);
                continue;
            }
            let Some(token) = cursor.value() else { break };
            match token.text() {
                Some(text) => {
                    self.chainer.push(b"\"");
                    self.chainer.text(text);
                    self.chainer.mark(b'"');
                }
                None => {
                    // More digits might have followed.
                    self.freeze_if(value.cut && token.cut);
                    self.chainer.push(token.raw);
                }
            }
        }
        self.freeze_if(value.cut);
    }

    /// A digest in the place of each of the tokens it will become.
    fn media(&mut self, value: Value<'_>) {
        self.freeze_if(value.cut);
        self.cut_in_media |= value.cut;
        let payload = media::payload(value);
        // Seven bits a byte, so that no mark can appear in it.
        let digest = (media::digest(payload, self.seed) & u64::from_le_bytes([0x7F; 8])).to_le_bytes();
        let mut bytes = media::tokens(payload) as usize * BYTES_PER_TOKEN;
        while bytes > 0 {
            let some = digest.get(..bytes).unwrap_or(&digest);
            self.chainer.push(some);
            bytes -= some.len();
        }
    }

    fn freeze_if(&mut self, cut: bool) {
        if cut {
            self.chainer.freeze();
        }
    }
}

impl<const N: usize> Table<N> {
    fn read<'a>(&self, cursor: &mut Cursor<'a>) -> Fields<'a, N> {
        cursor.fields(|key| self.members.iter().position(|(wanted, _)| *wanted == key))
    }
}

fn is_text_kind(raw: &[u8]) -> bool {
    matches!(raw, b"\"text\"" | b"\"input_text\"" | b"\"output_text\"" | b"\"message\"")
}

/// Also where it is cut inside its name: it may still become one.
fn is_billing_header<const N: usize>(part: &Fields<'_, N>) -> bool {
    let text = part.found.first().copied().flatten().and_then(Value::text);
    text.is_some_and(|text| text.raw.starts_with(BILLING_HEADER) || text.cut && BILLING_HEADER.starts_with(text.raw))
}
