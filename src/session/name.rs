//! Names of headers and cookies.

use serde::{Deserialize, Deserializer, de};

/// The longest that is taken, in bytes.
const MAX: usize = 128;

/// A header's name, in lower case as the proxy keeps them. It is written into answers, so it must be nobody else's.
pub(super) fn header<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let name = cookie(deserializer)?.unwrap_or_default().to_ascii_lowercase();
    if name.starts_with("x-") {
        Ok(Some(name))
    } else {
        Err(de::Error::custom(format!("{name:?} does not begin with x-")))
    }
}

/// A cookie's name. Both are what HTTP calls a token (RFC 9110, 5.6.2; RFC 6265, 4.1.1).
pub(super) fn cookie<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let name = String::deserialize(deserializer)?;
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if (1..=MAX).contains(&name.len()) && name.bytes().all(fits) {
        return Ok(Some(name));
    }
    Err(de::Error::custom(format!("{name:?} is not a name of 1 to {MAX} letters, digits and !#$%&'*+-.^_`|~")))
}
