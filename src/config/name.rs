//! Short names.

use serde::Deserialize;

/// A name of 1 to 32 of the characters a-z, 0-9, `-` and `_`: it becomes part of keys and metric names.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(try_from = "String")]
#[cfg_attr(feature = "schema", schemars(inline, extend("title" = "name, 1 to 32 of a-z 0-9 - _", "pattern" = "^[a-z0-9_-]{1,32}$")))]
pub(super) struct Name(pub(super) String);

impl TryFrom<String> for Name {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_';
        if (1..=32).contains(&text.len()) && text.bytes().all(allowed) {
            return Ok(Self(text));
        }
        Err(format!("{text:?} is not a name of 1 to 32 of the characters a-z, 0-9, - and _"))
    }
}
