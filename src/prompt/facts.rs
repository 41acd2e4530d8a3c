//! What rules can tell requests apart by: how long the prompt is, what comes with it, and what the user said last.

use super::json::{Cursor, Value};
use super::{Blocks, Dialect, Request, read};

/// Of the user's last message this much is kept, in bytes: rules look for words that say what is to be done.
const MAX_SAID: usize = 16 << 10;

/// A picture may be inside the result of a tool, which is a part of a message.
const MAX_DEPTH: u32 = 2;

/// What a request is like, as far as it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Estimated prompt tokens, as in [`super::Prompt::tokens`].
    pub tokens: u32,
    /// It offers the model tools or functions.
    pub tools: bool,
    /// There is a picture in the prompt.
    pub images: bool,
    /// The text of the user's last message, the first 16 KiB of it, with the ASCII letters in lower case. Of a text that is
    /// no conversation, the text.
    pub said: Vec<u8>,
}

impl Facts {
    /// Reads a request body, or the first part of one, as [`read`] does.
    pub fn of(dialect: Dialect, body: &[u8], declared_len: Option<u64>) -> Self {
        let mut cursor = Cursor::new(body);
        if cursor.peek() != Some(b'{') {
            return Self::default();
        }
        let request = Request::scan(&mut cursor);
        let prompt = match dialect {
            Dialect::Completions => request.prompt,
            Dialect::Responses => request.input,
            Dialect::Generate => request.text.or(request.prompt).or(request.inputs),
            Dialect::ChatCompletions | Dialect::Messages => request.messages,
            Dialect::Embeddings => request.messages.or(request.input),
        };
        let is_given = |field: Option<Value<'_>>| field.is_some_and(|value| !value.is_empty());
        // Nothing is hashed, only counted.
        let counted = Blocks { max: 0, ..Blocks::default() };
        let mut facts = Self {
            tokens: read(dialect, body, declared_len, &counted).tokens,
            tools: is_given(request.tools) || is_given(request.functions),
            images: is_given(request.image_data) || prompt.is_some_and(|prompt| shows_picture(prompt, 0)),
            said: Vec::new(),
        };
        if let Some(said) = prompt.and_then(last_of_user) {
            facts.hear(said);
        }
        facts
    }

    /// Keeps a text, or those of a list of parts.
    fn hear(&mut self, content: Value<'_>) {
        if let Some(text) = content.text() {
            text.pieces(|piece| {
                let room = MAX_SAID.saturating_sub(self.said.len());
                self.said.extend(piece.iter().take(room).map(u8::to_ascii_lowercase));
            });
            // Words of two parts are not one.
            self.said.push(b'\n');
        }
        for part in elements(content) {
            if let Some(text) = Item::of(part).text.filter(|text| text.text().is_some()) {
                self.hear(text);
            }
        }
    }
}

/// A message or a part of one.
struct Item<'a> {
    role: Option<Value<'a>>,
    content: Option<Value<'a>>,
    kind: Option<Value<'a>>,
    text: Option<Value<'a>>,
}

impl<'a> Item<'a> {
    fn of(value: Value<'a>) -> Self {
        const KEYS: [&[u8]; 4] = [b"role", b"content", b"type", b"text"];
        let index = |key: &[u8]| KEYS.iter().position(|wanted| *wanted == key);
        let found = value.is_object().then(|| value.cursor().fields(index, |_, _| ()).found);
        let [role, content, kind, text] = found.unwrap_or_default();
        Self { role, content, kind, text }
    }
}

/// The elements of a list; none of what is no list.
fn elements(list: Value<'_>) -> impl Iterator<Item = Value<'_>> {
    let mut cursor = list.cursor();
    cursor.enter();
    std::iter::from_fn(move || if list.is_array() { cursor.element().and_then(|_| cursor.value()) } else { None })
}

/// What the user said last; all of what is no list of messages.
fn last_of_user(prompt: Value<'_>) -> Option<Value<'_>> {
    if !prompt.is_array() {
        return Some(prompt);
    }
    let said = |element| {
        let item = Item::of(element);
        let by_user = item.role.is_some_and(|role| role.raw == b"\"user\"");
        // The prompts of a batch are mere texts.
        if by_user { item.content } else { Some(element).filter(|element| element.text().is_some()) }
    };
    elements(prompt).filter_map(said).last()
}

fn shows_picture(list: Value<'_>, depth: u32) -> bool {
    elements(list).any(|element| {
        let item = Item::of(element);
        let kind = item.kind.map_or(&b""[..], |kind| kind.raw);
        matches!(kind, b"\"image_url\"" | b"\"image\"" | b"\"input_image\"")
            || depth < MAX_DEPTH && item.content.is_some_and(|content| shows_picture(content, depth + 1))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn chat(body: &Value) -> Facts {
        Facts::of(Dialect::ChatCompletions, body.to_string().as_bytes(), None)
    }

    #[test]
    fn the_last_words_of_the_user_are_heard_whoever_spoke_after() {
        let messages = json!([
            { "role": "user", "content": "first" },
            { "role": "user", "content": [{ "type": "text", "text": "Fix" }, { "type": "text", "text": "The BUG \u{e4}" }] },
            { "role": "assistant", "content": "done" },
            { "role": "tool", "content": "ok" }
        ]);
        assert_eq!(chat(&json!({ "messages": messages })).said, "fix\nthe bug \u{e4}\n".as_bytes());
        let input = json!({ "input": "Hello" }).to_string();
        assert_eq!(Facts::of(Dialect::Responses, input.as_bytes(), None).said, b"hello\n");
        let batch = json!({ "prompt": ["One", "Two"] }).to_string();
        assert_eq!(Facts::of(Dialect::Completions, batch.as_bytes(), None).said, b"two\n");
    }

    #[test]
    fn a_long_message_is_heard_in_part() {
        let said = chat(&json!({ "messages": [{ "role": "user", "content": "x".repeat(100_000) }] })).said;
        assert_eq!(said.len(), MAX_SAID + 1);
    }

    #[test]
    fn tools_count_where_they_are_offered() {
        for (body, tools) in [
            (json!({ "tools": [{ "type": "function" }] }), true),
            (json!({ "functions": [{ "name": "f" }] }), true),
            (json!({ "tools": [] }), false),
            (json!({ "tools": null }), false),
            (json!({ "messages": [{ "role": "user", "content": "tools" }] }), false),
        ] {
            assert_eq!(chat(&body).tools, tools, "{body}");
        }
    }

    #[test]
    fn pictures_are_seen_in_every_dialect() {
        let user = |part: Value| json!([{ "role": "user", "content": [{ "type": "text", "text": "what?" }, part] }]);
        let result = json!({ "type": "tool_result", "content": [{ "type": "image", "source": {} }] });
        for (dialect, body, images) in [
            (
                Dialect::ChatCompletions,
                json!({ "messages": user(json!({ "type": "image_url", "image_url": {} })) }),
                true,
            ),
            (Dialect::Messages, json!({ "messages": user(json!({ "type": "image", "source": {} })) }), true),
            (Dialect::Messages, json!({ "messages": user(result) }), true),
            (Dialect::Responses, json!({ "input": user(json!({ "type": "input_image" })) }), true),
            (Dialect::Generate, json!({ "text": "what?", "image_data": "x" }), true),
            (Dialect::ChatCompletions, json!({ "messages": user(json!({ "type": "text", "text": "image" })) }), false),
        ] {
            assert_eq!(Facts::of(dialect, body.to_string().as_bytes(), None).images, images, "{body}");
        }
    }

    #[test]
    fn a_prompt_is_as_long_as_the_scheduler_takes_it_for() {
        let body = json!({ "messages": [{ "role": "user", "content": "hello ".repeat(1000) }] }).to_string();
        let declared = Some(body.len() as u64 + 4000);
        let prompt = read(Dialect::ChatCompletions, body.as_bytes(), declared, &Blocks::default());
        assert_eq!(Facts::of(Dialect::ChatCompletions, body.as_bytes(), declared).tokens, prompt.tokens);
    }

    #[test]
    fn a_body_cut_anywhere_does_no_harm() {
        let body =
            json!({ "model": "m", "messages": [{ "role": "user", "content": [{ "type": "image", "text": "a" }] }] });
        let body = body.to_string();
        for end in 0..=body.len() {
            Facts::of(Dialect::ChatCompletions, &body.as_bytes()[..end], Some(1 << 40));
            super::super::model(&body.as_bytes()[..end]);
        }
    }
}
