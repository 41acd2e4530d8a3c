//! The API dialects: what each reads from a body, and how it words an answer, whole or as events.

mod chat;
mod completions;
mod embeddings;
mod generate;
mod messages;
mod responses;

pub(super) use chat::Chat;
pub(super) use completions::Completions;
pub(super) use embeddings::Embeddings;
pub(super) use generate::Generate;
pub(super) use messages::Messages;
pub(super) use responses::Responses;

use serde_json::{Value, json};

use super::answer::Answer;
use super::error::ApiError;
use super::tokens::Tokens;

/// A way to ask for tokens and to get them.
pub(super) trait Dialect: Send + Sync {
    /// Reads a body.
    fn job(&self, body: &Value) -> Result<Job, ApiError>;

    /// The whole answer.
    fn whole(&self, reply: &Reply) -> Value;

    /// Events ahead of the first token.
    fn open(&self, _reply: &Reply, _out: &mut Events) {}

    /// Events for a token of the choice at this index; it is counted in `Choice::done` already.
    fn token(&self, reply: &Reply, choice: usize, text: &str, out: &mut Events);

    /// Events after the last token.
    fn close(&self, reply: &Reply, out: &mut Events);
}

/// What a body asks for.
#[derive(Debug)]
pub(super) struct Job {
    /// One or more.
    pub(super) prompts: Vec<Tokens>,
    /// `None` leaves it to the server.
    pub(super) max_tokens: Option<u64>,
    pub(super) stream: bool,
    /// Token counts at a stream's end.
    pub(super) include_usage: bool,
}

impl Job {
    fn new(body: &Value, prompts: Vec<Tokens>, max_tokens: &[&str]) -> Self {
        let options = body.get("stream_options");
        Self {
            prompts,
            max_tokens: max_tokens.iter().find_map(|key| body.get(key)?.as_u64()),
            stream: body.get("stream").and_then(Value::as_bool).unwrap_or(false),
            include_usage: options.and_then(|o| o.get("include_usage")?.as_bool()).unwrap_or(false),
        }
    }
}

/// An answer in the making.
pub(super) struct Reply {
    /// Bare: each dialect puts its own prefix before it.
    pub(super) id: String,
    /// Unix seconds.
    pub(super) created: u64,
    pub(super) model: String,
    pub(super) choices: Vec<Choice>,
    /// Tokens each choice will have.
    pub(super) max_tokens: u32,
    /// Whether the body set that number: then the answer was cut, else it came to its end.
    pub(super) cut: bool,
    pub(super) include_usage: bool,
}

/// The answer to one prompt.
pub(super) struct Choice {
    pub(super) prompt_tokens: u32,
    pub(super) cached_tokens: u32,
    pub(super) answer: Answer,
    /// Tokens generated so far.
    pub(super) done: u32,
}

impl Reply {
    /// The first choice's text; dialects without choices have one.
    fn text(&self) -> &str {
        self.choices.first().map_or("", |choice| choice.answer.text())
    }

    /// Whether the choice's last token is out.
    fn is_last(&self, choice: usize) -> bool {
        self.choices.get(choice).is_some_and(|choice| choice.done >= self.max_tokens)
    }

    fn finish_reason(&self) -> &'static str {
        if self.cut { "length" } else { "stop" }
    }

    fn prompt_tokens(&self) -> u32 {
        self.choices.iter().map(|choice| choice.prompt_tokens).sum()
    }

    fn cached_tokens(&self) -> u32 {
        self.choices.iter().map(|choice| choice.cached_tokens).sum()
    }

    fn output_tokens(&self) -> u32 {
        self.choices.iter().map(|choice| choice.done).sum()
    }

    /// OpenAI's usage object.
    fn usage(&self) -> Value {
        let (prompt, output) = (self.prompt_tokens(), self.output_tokens());
        json!({
            "prompt_tokens": prompt,
            "total_tokens": prompt + output,
            "completion_tokens": output,
            "prompt_tokens_details": {"cached_tokens": self.cached_tokens()},
        })
    }
}

/// Server-sent events being written.
#[derive(Default)]
pub(super) struct Events(pub(super) String);

impl Events {
    fn data(&mut self, data: &Value) {
        self.0.push_str("data: ");
        self.0.push_str(&data.to_string());
        self.0.push_str("\n\n");
    }

    /// An event with a name, which is repeated in the data as `type`.
    fn named(&mut self, name: &str, mut data: Value) {
        if let Some(fields) = data.as_object_mut() {
            fields.insert("type".to_owned(), name.into());
        }
        self.0.push_str(&format!("event: {name}\n"));
        self.data(&data);
    }

    fn done(&mut self) {
        self.0.push_str("data: [DONE]\n\n");
    }
}

/// A list of messages, which must be there.
fn messages(body: &Value) -> Result<&[Value], ApiError> {
    body.get("messages").and_then(Value::as_array).map(Vec::as_slice).ok_or_else(|| ApiError::missing("body.messages"))
}
