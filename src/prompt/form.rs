//! The canonical form: one order for the parts of a prompt, whatever order its JSON had.
//!
//! What the model server will render comes out as one run of bytes: tools, system, messages; in a message role, content
//! and then the rest. Parts are framed with marks that no text can contain, so `role` and `content` cannot be confused
//! with other ways of dividing the same letters, and nothing depends on what comes later, so a conversation that grows
//! keeps all it had. The three chat dialects share the form: the same conversation is the same chain. Members that no
//! table knows come last, for they may be part of the prompt; those known to be none are left out.
//!
//! A body that was cut must give the start of what the whole body gives. So in an object that was cut only the leading
//! members of the canonical order count, and only while none of them is missing: whatever was not seen might have come
//! first. From there on the chain is frozen: the rest of what was read only counts as tokens.

use super::blocks::{BYTES_PER_TOKEN, Chainer};
use super::json::{Cursor, Fields, Text, Value};
use super::media;

/// How a member enters the form.
#[derive(Clone, Copy, PartialEq)]
enum Shape {
    /// The text itself, without a mark: content that is one text part is the same as that text.
    Bare,
    /// A text, or any JSON without its white space.
    Plain,
    /// JSON, as it is or as the text of it.
    Json,
    /// What sort of part or message it is; the sorts that mean plain text are as good as absent.
    Kind,
    /// A text or a list of parts.
    Content,
    /// A tool call or a list of them.
    Calls,
    /// Something with a URL or data inside.
    Media,
}

use Shape::{Bare, Calls, Content, Json, Kind, Media, Plain};

struct Table<const N: usize> {
    /// In canonical order. Appending keeps old hashes.
    members: [(&'static [u8], Shape); N],
    /// Of an object that was cut, the members that may count.
    lead: usize,
    /// Mark of the first member; each table has marks of its own.
    tag: u8,
}

/// A message of a chat, or an item of a Responses input.
static MESSAGE: Table<21> = Table {
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
        (b"arguments", Json),
        (b"output", Content),
        (b"summary", Content),
        (b"encrypted_content", Plain),
        (b"input", Plain),
        (b"action", Plain),
        (b"code", Plain),
        (b"queries", Plain),
        (b"results", Plain),
        (b"audio", Media),
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
    members: [(b"id", Plain), (b"type", Plain), (b"function", Calls), (b"name", Plain), (b"arguments", Json)],
    lead: 0,
    tag: b'0',
};

/// Members that models are not shown: bookkeeping of servers and clients.
const IGNORED: [&[u8]; 9] = [
    b"annotations",
    b"cache_control",
    b"created_at",
    b"id",
    b"index",
    b"logprobs",
    b"metadata",
    b"signature",
    b"status",
];

/// Unknown members of one object whose order makes no difference; more are taken as they stand, for sorting has its price.
const MAX_SORTED: usize = 32;

/// Objects inside objects that are put in order; deeper ones go in as they stand. A tool result with parts needs four.
const MAX_DEPTH: u32 = 4;

/// Claude Code puts a block that changes with each request before its system prompt; model servers drop it.
const BILLING_HEADER: &[u8] = b"x-anthropic-billing-header";

/// The role of who speaks after the instructions, as written.
const USER: &[u8] = b"\"user\"";

/// Writes prompts in the canonical form.
pub(super) struct Form {
    pub(super) chainer: Chainer,
    seed: u64,
    depth: u32,
    /// The body ended inside a picture or the like: what is missing is mostly data, not text.
    pub(super) cut_in_media: bool,
}

impl Form {
    pub(super) fn new(chainer: Chainer, seed: u64) -> Self {
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
            self.message(b"user", messages);
            return self.chainer.opener.end();
        }
        let mut cursor = messages.cursor();
        cursor.enter();
        while let Some(first) = cursor.element() {
            let mut role = Some(USER);
            if first == b'{' {
                role = self.record(&mut cursor, &MESSAGE).map(|role| role.raw);
            } else if let Some(value) = cursor.value() {
                self.message(b"user", value);
            }
            if role == Some(USER) {
                self.chainer.opener.end();
            }
        }
        self.freeze_if(messages.cut);
    }

    /// An object in its place in a list, framed. Returns its first member, of a message the role.
    fn record<'a, const N: usize>(&mut self, cursor: &mut Cursor<'a>, table: &Table<N>) -> Option<Value<'a>> {
        self.chainer.mark(b'{');
        let record = table.read(cursor);
        self.members(&record, table);
        self.chainer.mark(b'}');
        record.fields.found.first().copied().flatten()
    }

    fn members<const N: usize>(&mut self, record: &Record<'_, N>, table: &Table<N>) {
        let Record { fields, others } = record;
        let tagged = table.members.iter().zip(table.tag..);
        for (place, (value, ((_, shape), tag))) in fields.found.iter().zip(tagged).enumerate() {
            self.freeze_if(!fields.whole && (value.is_none() || place >= table.lead));
            let Some(value) = value else { continue };
            if !value.is_empty() {
                self.member(*value, *shape, tag);
            }
            self.freeze_if(value.cut);
        }
        for (key, value) in others {
            self.chainer.mark(table.tag + N as u8);
            self.chainer.text(*key);
            self.chainer.mark(b'=');
            self.unknown(*value);
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
            Json => self.json(value),
            Content => {
                self.content(value);
                // Of a part, where the next part of the message would look like one more of this.
                if self.depth > 1 {
                    self.chainer.mark(b']');
                }
            }
            Calls => self.calls(value),
            Media => self.media(value),
        }
        self.depth -= 1;
    }

    /// A text, or parts with a mark between them.
    fn content(&mut self, content: Value<'_>) {
        if content.is_object() {
            return self.members(&PART.read(&mut content.cursor()), &PART);
        }
        if !content.is_array() {
            return self.plain(content);
        }
        let mut cursor = content.cursor();
        cursor.enter();
        let mut first = true;
        while let Some(byte) = cursor.element() {
            let part = (byte == b'{').then(|| PART.read(&mut cursor));
            if first && part.as_ref().is_some_and(|part| is_billing_header(&part.fields)) {
                continue;
            }
            if !std::mem::take(&mut first) {
                self.chainer.mark(b',');
            }
            match part {
                Some(part) => self.members(&part, &PART),
                None => cursor.value().into_iter().for_each(|value| self.plain(value)),
            }
        }
        self.freeze_if(content.cut);
    }

    fn calls(&mut self, calls: Value<'_>) {
        let mut cursor = calls.cursor();
        if calls.is_object() {
            self.record(&mut cursor, &CALL);
            return;
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

    /// A member that is newer than the tables.
    fn unknown(&mut self, value: Value<'_>) {
        if media::is_bulky(value.raw) {
            self.media(value);
        } else {
            self.plain(value);
        }
    }

    /// Arguments of a call: most clients send them as text, but what the model sees is made from the JSON in it.
    fn json(&mut self, value: Value<'_>) {
        let Some(text) = value.text() else { return self.plain(value) };
        let inside = text.to_vec();
        let raw = inside.trim_ascii_start();
        match raw.first() {
            Some(b'{') => self.plain(Value { raw, cut: value.cut }),
            // It may still become an object.
            None if value.cut => self.chainer.freeze(),
            _ => self.chainer.text(text),
        }
    }

    /// A text as it is, anything else token by token.
    pub(super) fn plain(&mut self, value: Value<'_>) {
        if let Some(text) = value.text() {
            return self.chainer.text(text);
        }
        let mut cursor = value.cursor();
        let mut after_word = false;
        while let Some(first) = cursor.peek() {
            if matches!(first, b'{' | b'}' | b'[' | b']' | b',' | b':') {
                cursor.take();
                self.chainer.push(&[first]);
                after_word = false;
                continue;
            }
            let Some(token) = cursor.value() else { break };
            // Only where it is not JSON after all; then white space matters.
            if std::mem::replace(&mut after_word, true) {
                self.chainer.push(b" ");
            }
            match token.text() {
                Some(text) => {
                    self.chainer.push(b"\"");
                    // A text that never ends need not be cut: it may be from a model that stopped there.
                    self.chainer.text(Text { cut: text.cut && value.cut, ..text });
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
        // The digest holds the secret.
        self.chainer.opener.close();
        let payload = media::payload(value);
        // Seven bits a byte, so that no mark can appear in it.
        let digest = (media::digest(payload, self.seed) & u64::from_le_bytes([0x7F; 8])).to_le_bytes();
        self.chainer.repeat(digest, media::tokens(payload) as usize * BYTES_PER_TOKEN);
    }

    fn freeze_if(&mut self, cut: bool) {
        if cut {
            self.chainer.freeze();
        }
    }
}

/// An object as its table sees it.
struct Record<'a, const N: usize> {
    fields: Fields<'a, N>,
    others: Vec<(Text<'a>, Value<'a>)>,
}

impl<const N: usize> Table<N> {
    fn read<'a>(&self, cursor: &mut Cursor<'a>) -> Record<'a, N> {
        let mut others = Vec::new();
        let index = |key: &[u8]| self.members.iter().position(|(wanted, _)| *wanted == key);
        let fields = cursor.fields(index, |key, value| {
            if !value.is_empty() && !IGNORED.contains(&key.raw) {
                others.push((key, value));
            }
        });
        sort(&mut others);
        Record { fields, others }
    }
}

fn sort(members: &mut [(Text<'_>, Value<'_>)]) {
    if members.len() <= MAX_SORTED {
        members.sort_by(|(one, _), (other, _)| one.raw.cmp(other.raw));
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
