//! Paths of HTTP requests.

use serde::Deserialize;

/// The path, and perhaps query, of a request: `/metrics`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "String")]
#[cfg_attr(feature = "schema", schemars(inline, extend("title" = "path", "pattern" = "^/[!-~]{0,255}$")))]
pub(super) struct HttpPath(pub(super) String);

impl TryFrom<String> for HttpPath {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text.starts_with('/') && text.len() <= 256 && text.bytes().all(|b| b.is_ascii_graphic()) {
            return Ok(Self(text));
        }
        Err(format!("{text:?} is not a path such as /metrics, of at most 256 bytes without spaces"))
    }
}
