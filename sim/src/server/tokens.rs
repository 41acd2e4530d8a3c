//! Text to tokens: four characters each, and every message starts a new one, so that an answer quoted in the next turn
//! gives the tokens it was made of.

use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

/// Characters in a token.
pub(crate) const CHARS: usize = 4;

/// Tokens an image stands for.
const IMAGE: u32 = 256;

/// A prompt being put together.
#[derive(Debug, Default)]
pub(crate) struct Tokens(pub(crate) Vec<u32>);

impl Tokens {
    /// Appends a text.
    pub(crate) fn text(&mut self, text: &str) {
        let mut rest = text;
        while !rest.is_empty() {
            let end = rest.char_indices().nth(CHARS).map_or(rest.len(), |(at, _)| at);
            let (token, tail) = rest.split_at_checked(end).unwrap_or((rest, ""));
            self.0.push(id(token));
            rest = tail;
        }
    }

    /// Appends one token that no text gives, such as the start of a message.
    pub(crate) fn mark(&mut self, mark: &str) {
        self.0.push(id(mark) | 1 << 31);
    }

    /// Appends content in any dialect's form: a string, or a list of parts.
    pub(crate) fn content(&mut self, content: &Value) {
        match content {
            Value::Null => {}
            Value::String(text) => self.text(text),
            Value::Array(parts) => parts.iter().for_each(|part| self.part(part)),
            other => self.text(&other.to_string()),
        }
    }

    fn part(&mut self, part: &Value) {
        let image = ["image_url", "source", "image"].into_iter().find_map(|key| part.get(key));
        match (part.get("text"), image) {
            (Some(Value::String(text)), _) => self.text(text),
            (_, Some(image)) => {
                let seed = id(&image.to_string());
                self.0.extend((0..IMAGE).map(|at| seed.wrapping_add(at) | 1 << 31));
            }
            _ => self.content(&Value::String(part.to_string())),
        }
    }

    /// Appends a list of chat messages, tool calls included.
    pub(crate) fn messages(&mut self, messages: &[Value]) {
        for message in messages {
            self.mark(message.get("role").and_then(Value::as_str).unwrap_or("user"));
            match (message.get("content"), message.get("tool_calls")) {
                // A tool's result, say.
                (None, None) => self.text(&message.to_string()),
                (content, calls) => {
                    self.content(content.unwrap_or(&Value::Null));
                    self.content(calls.unwrap_or(&Value::Null));
                }
            }
        }
    }

    /// Appends the tools on offer, if there are any.
    pub(crate) fn tools(&mut self, body: &Value) {
        if let Some(tools) = body.get("tools").filter(|tools| tools.as_array().is_some_and(|tools| !tools.is_empty())) {
            self.mark("tools");
            self.text(&tools.to_string());
        }
    }
}

/// Token ids of a prompt given as text or as ids; `None` for anything else.
pub(crate) fn prompt(value: &Value) -> Option<Tokens> {
    let mut tokens = Tokens::default();
    match value {
        Value::String(text) => tokens.text(text),
        Value::Array(ids) => {
            for id in ids {
                tokens.0.push(u32::try_from(id.as_u64()?).ok()?);
            }
        }
        _ => return None,
    }
    Some(tokens)
}

/// One prompt, or a list of prompts; `None` for anything else.
pub(crate) fn prompts(value: &Value) -> Option<Vec<Tokens>> {
    match value {
        Value::Array(list) if list.iter().any(|item| !item.is_number()) => list.iter().map(prompt).collect(),
        one => Some(vec![prompt(one)?]),
    }
}

/// 31 bits: the top one tells marks from text.
fn id(text: &str) -> u32 {
    (xxh3_64(text.as_bytes()) >> 33) as u32
}
