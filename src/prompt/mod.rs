//! From a request body to what a scheduler needs: model, prefix blocks, token estimate.
//!
//! The body is scanned once for the fields that matter, without building a tree (`json`). Then the prompt is written in
//! a canonical form (`form`) and hashed block by block (`blocks`). So the order of fields, white space and the way
//! letters are escaped make no difference, and a prompt that grows keeps the blocks it had.
//!
//! Nothing is ever rejected: that is the model server's business. What cannot be understood gives a [`Prompt`] with
//! less in it, down to an empty one. A body that was cut gives the first blocks of the whole one, with one exception:
//! fields that come before the messages in the canonical order (model, tools) and after the cut in the body cannot be
//! known. Such a body still gets blocks, and they agree with those of other bodies cut in the same way.
//!
//! With `previous_response_id` the server puts a conversation that it stored between the instructions and the input. So
//! the id stands there in the form: tools and instructions match as ever, and the input matches only after the same id,
//! for it is not at the place in the prompt that it seems to be.

mod blocks;
mod dialect;
mod facts;
mod form;
pub(crate) mod json;
mod media;
mod opening;
#[cfg(test)]
mod tests;
mod text;

use xxhash_rust::xxh3::xxh3_64_with_seed;

pub use self::blocks::{BYTES_PER_TOKEN, Blocks, Chain, MAX_CHAINS, MAX_TOKENS};
pub use self::dialect::Dialect;
pub use self::facts::Facts;
pub use self::opening::Opening;

use self::blocks::{Chainer, saturate};
use self::form::Form;
use self::json::{Cursor, Value};
use self::opening::Opener;

/// Longer names are not kept: no server has them, and whoever sends one does not mean well.
const MAX_NAME: usize = 1024;

/// What a request asks for, as far as it could be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prompt {
    /// The model as named in the body. `None`: absent, empty, not a string, or longer than 1024 bytes.
    pub model: Option<Box<[u8]>>,
    /// The adapter in `lora_path` (SGLang); elsewhere an adapter is named as the model.
    pub adapter: Option<Box<[u8]>>,
    /// A chain for each prompt in the request that fills a block, at most [`MAX_CHAINS`].
    pub chains: Vec<Chain>,
    /// How the first of them begins; `None` unless [`Blocks::openings`] asks for it.
    pub opening: Option<Opening>,
    /// Estimated prompt tokens, what lies beyond the bytes read included, at most [`MAX_TOKENS`].
    pub tokens: u32,
    /// The most tokens the client wants generated; 0 of embeddings.
    pub max_output_tokens: Option<u32>,
    /// The client wants the answer as a stream.
    pub stream: bool,
    /// More of the body was still to come when it was read, as far as known. [`read`] says false; whoever knows better sets
    /// it.
    pub arriving: bool,
}

impl Prompt {
    /// Full blocks over all chains.
    pub fn blocks(&self) -> usize {
        self.chains.iter().map(|chain| chain.hashes.len()).sum()
    }
}

/// Reads a request body, or the first part of one. `declared_len` is the length of the whole body in bytes where the
/// client declared it.
pub fn read(dialect: Dialect, body: &[u8], declared_len: Option<u64>, blocks: &Blocks) -> Prompt {
    let mut cursor = Cursor::new(body);
    if cursor.peek() != Some(b'{') {
        return Prompt::default();
    }
    let request = Request::scan(&mut cursor);
    let mut reader = Reader { form: Form::new(Chainer::new(blocks), blocks.seed), root: request.root(blocks.seed) };
    if blocks.openings {
        reader.form.chainer.opener = Opener::new(blocks.tokens, request.root(0));
    }
    match dialect {
        Dialect::ChatCompletions => reader.chat(&request, request.messages),
        Dialect::Responses => reader.chat(&request, request.input),
        Dialect::Messages => reader.chat(&request, request.messages),
        Dialect::Completions => reader.prompts(request.prompt),
        Dialect::Embeddings if request.messages.is_some() => reader.chat(&request, request.messages),
        Dialect::Embeddings => reader.prompts(request.input),
        Dialect::Generate => reader.prompts(request.text.or(request.input_ids).or(request.prompt).or(request.inputs)),
    }
    let missing = declared_len.unwrap_or(0).saturating_sub(body.len() as u64);
    let unread = if reader.form.cut_in_media { 0 } else { missing / BYTES_PER_TOKEN as u64 };
    let (chains, opening, tokens) = reader.form.chainer.finish();
    Prompt {
        model: name(request.model),
        adapter: name(request.lora_path),
        chains,
        opening,
        tokens: saturate(tokens.saturating_add(unread)),
        max_output_tokens: if dialect == Dialect::Embeddings { Some(0) } else { request.max_output_tokens() },
        stream: request.stream.is_some_and(|stream| stream.raw == b"true"),
        arriving: false,
    }
}

/// The model that a body, or the first part of one, asks for. Much cheaper than [`read`], and the same.
pub fn model(body: &[u8]) -> Option<Box<[u8]>> {
    let mut cursor = Cursor::new(body);
    let is_object = cursor.peek() == Some(b'{');
    name(is_object.then(|| cursor.get(b"model"))?)
}

/// Declares the fields of a request together with the keys they have.
macro_rules! request {
    ($($field:ident),* $(,)?) => {
        /// The fields of a body that matter, in all dialects.
        struct Request<'a> {
            $($field: Option<Value<'a>>,)*
        }

        impl<'a> Request<'a> {
            const KEYS: [&'static str; [$(stringify!($field)),*].len()] = [$(stringify!($field)),*];

            fn scan(cursor: &mut Cursor<'a>) -> Self {
                let index = |key: &[u8]| Self::KEYS.iter().position(|wanted| wanted.as_bytes() == key);
                let [$($field),*] = cursor.fields(index, |_, _| ()).found;
                Self { $($field),* }
            }
        }
    };
}

request! {
    cache_salt,
    documents,
    functions,
    image_data,
    input,
    input_ids,
    inputs,
    instructions,
    lora_path,
    max_completion_tokens,
    max_output_tokens,
    max_tokens,
    messages,
    model,
    parameters,
    previous_response_id,
    prompt,
    sampling_params,
    stream,
    system,
    text,
    tools,
}

impl Request<'_> {
    /// What must agree for two prompts to share a cache. The lengths keep neighbours apart.
    fn root(&self, seed: u64) -> u64 {
        let mut key = Vec::new();
        for part in [self.model, self.cache_salt, self.lora_path] {
            let part = part.filter(|part| !part.cut);
            let bytes = part.map(|part| part.text().map_or_else(|| part.raw.to_vec(), json::Text::to_vec));
            let bytes = bytes.unwrap_or_default();
            key.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
            key.extend_from_slice(&bytes);
        }
        // SGLang's text only says that there are pictures, so they count from the first block on.
        if let Some(images) = self.image_data.filter(|images| !images.cut && !images.is_empty()) {
            key.extend_from_slice(&media::digest(media::payload(images), seed).to_le_bytes());
        }
        xxh3_64_with_seed(&key, seed)
    }

    fn max_output_tokens(&self) -> Option<u32> {
        let nested = |object: Option<Value<'_>>| {
            let object = object.filter(|object| object.is_object())?;
            object.cursor().get(b"max_new_tokens").and_then(Value::count)
        };
        let direct = [self.max_completion_tokens, self.max_output_tokens, self.max_tokens];
        direct
            .into_iter()
            .find_map(|limit| limit.and_then(Value::count))
            .or_else(|| nested(self.sampling_params))
            .or_else(|| nested(self.parameters))
    }
}

/// Makes chains of a request.
struct Reader {
    form: Form,
    root: u64,
}

impl Reader {
    /// One prompt, rendered from a conversation.
    fn chat(&mut self, request: &Request<'_>, messages: Option<Value<'_>>) {
        let tools = request.tools.or(request.functions);
        let system = request.system.or(request.instructions);
        self.form.chainer.begin(self.root);
        self.form.section(b'T', tools);
        self.form.section(b'D', request.documents);
        if let Some(system) = system {
            self.form.message(b"system", system);
        }
        self.form.section(b'R', request.previous_response_id);
        if let Some(messages) = messages {
            self.form.conversation(messages);
        }
        self.form.chainer.end();
    }

    /// A text, token ids, or a list of either: a chain each.
    fn prompts(&mut self, prompt: Option<Value<'_>>) {
        let Some(prompt) = prompt else { return };
        if !prompt.is_array() {
            return self.text(prompt);
        }
        let mut cursor = prompt.cursor();
        cursor.enter();
        while let Some(first) = cursor.element() {
            match first {
                b'-' | b'0'..=b'9' => self.ids(&mut cursor),
                b'[' => {
                    cursor.enter();
                    self.ids(&mut cursor);
                    // The rest of a list that is not of numbers, and its end.
                    while cursor.element().is_some() && cursor.value().is_some() {}
                    cursor.enter();
                }
                _ => {
                    let Some(text) = cursor.value() else { break };
                    self.text(text);
                }
            }
        }
    }

    fn text(&mut self, text: Value<'_>) {
        self.form.chainer.begin(self.root);
        self.form.chainer.opener.end_with_beginning();
        self.form.plain(text);
        self.form.chainer.end();
    }

    /// Token ids up to the first element that is none. A number is never a text: ids have a root of their own.
    fn ids(&mut self, cursor: &mut Cursor<'_>) {
        self.form.chainer.begin(!self.root);
        self.form.chainer.opener.end_with_beginning();
        while let Some(b'-' | b'0'..=b'9') = cursor.element() {
            let (id, cut) = cursor.number();
            if cut {
                self.form.chainer.freeze();
            }
            self.form.chainer.push(&id.to_le_bytes());
        }
        self.form.chainer.end();
    }
}

/// A name the model server may know.
pub(crate) fn name(value: Option<Value<'_>>) -> Option<Box<[u8]>> {
    let text = value.and_then(Value::text).filter(|text| !text.cut && !text.raw.is_empty())?;
    // Six bytes of escape at most for one of text.
    let bytes = if text.raw.len() <= 6 * MAX_NAME { text.to_vec() } else { return None };
    (bytes.len() <= MAX_NAME).then(|| bytes.into_boxed_slice())
}
