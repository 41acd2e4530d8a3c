//! Names of models and adapters.

use crate::prompt::MAX_NAME;
use serde::Deserialize;

/// The name of a model or an adapter as clients write it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "String")]
#[cfg_attr(feature = "schema", schemars(inline, extend("title" = "model name", "minLength" = 1, "maxLength" = MAX_NAME)))]
pub(super) struct ModelName(pub(super) String);

impl TryFrom<String> for ModelName {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        // No request is found to ask for any other.
        if (1..=MAX_NAME).contains(&text.len()) {
            return Ok(Self(text));
        }
        Err(format!("{text:?} is not the name of a model, of 1 to {MAX_NAME} bytes"))
    }
}
