//! Names of headers.

use serde::Deserialize;

/// The name of a header that belongs to nobody else: it begins with `x-`. In lower case.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "String")]
#[cfg_attr(feature = "schema", schemars(inline, extend("title" = "x-header", "pattern" = "^[xX]-[A-Za-z0-9_-]{1,62}$")))]
pub(super) struct HeaderName(pub(super) String);

impl TryFrom<String> for HeaderName {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let name = text.to_ascii_lowercase();
        let rest = name.strip_prefix("x-").unwrap_or_default();
        if (1..=62).contains(&rest.len()) && rest.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b)) {
            return Ok(Self(name));
        }
        Err(format!("{text:?} is not a header name such as x-served-by, of x- and 1 to 62 letters, digits, - and _"))
    }
}
