//! Which API a request speaks.

/// The API of a request, which says where in the body the prompt is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// OpenAI chat completions.
    ChatCompletions,
    /// OpenAI completions.
    Completions,
    /// OpenAI responses.
    Responses,
    /// OpenAI embeddings.
    Embeddings,
    /// Anthropic messages.
    Messages,
    /// SGLang's own API; TGI's has the same path.
    Generate,
}

const PATHS: [(&[u8], Dialect); 6] = [
    (b"/v1/chat/completions", Dialect::ChatCompletions),
    (b"/v1/completions", Dialect::Completions),
    (b"/v1/responses", Dialect::Responses),
    (b"/v1/embeddings", Dialect::Embeddings),
    (b"/v1/messages", Dialect::Messages),
    (b"/generate", Dialect::Generate),
];

impl Dialect {
    /// The dialect of a request path, `None` if it is no inference path. Whatever a gateway has put in front does not
    /// matter, nor does the query string.
    pub fn of_path(path: &[u8]) -> Option<Self> {
        let path = path.split(|byte| matches!(byte, b'?' | b'#')).next()?;
        PATHS.iter().find(|(suffix, _)| path.ends_with(suffix)).map(|(_, dialect)| *dialect)
    }
}
