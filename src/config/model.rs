//! Names of models and adapters.

use serde::Deserialize;

/// No server has longer names.
const LONGEST: usize = 256;

/// The name of a model or an adapter, of 1 to 256 bytes without control characters: it goes into a header, too.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "String")]
#[cfg_attr(feature = "schema", schemars(inline, extend("title" = "model, 1 to 256 bytes", "minLength" = 1, "maxLength" = 256)))]
pub(super) struct ModelName(pub(super) String);

impl TryFrom<String> for ModelName {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if (1..=LONGEST).contains(&text.len()) && !text.bytes().any(|byte| byte.is_ascii_control()) {
            return Ok(Self(text));
        }
        Err(format!("{text:?} is not a name of 1 to {LONGEST} bytes without control characters"))
    }
}
