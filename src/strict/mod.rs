//! JSON read strictly: a key written twice, an unknown field and a list in place of an object are errors with a path.
//!
//! The document is read twice. The first reading ([`unique`]) knows no types and finds what is no JSON and keys written
//! twice, which typed maps would swallow. The second ([`typed`]) reads the types from what the first one found.

mod error;
mod suggest;
mod typed;
mod unique;

pub use error::ConfigError;
pub(crate) use suggest::choices;

use serde::de::DeserializeOwned;
use serde_json::Value;

/// The least configuration.
pub(crate) const SMALLEST: &str = r#"{"pool": {"endpoints": [{"address": "10.0.0.1:8000"}]}}"#;

/// Reads a JSON object.
pub(crate) fn parse(json: &[u8]) -> Result<Value, ConfigError> {
    let whole = |message| Err(ConfigError::at("", message));
    if json.trim_ascii().is_empty() {
        return whole(format!("the configuration is empty; the least is {SMALLEST}"));
    }
    let value = unique::read(json)?;
    if !value.is_object() {
        return whole(format!("the configuration must be a JSON object, such as {SMALLEST}"));
    }
    Ok(value)
}

/// Reads the types of a value.
pub(crate) fn from<T: DeserializeOwned>(value: Value) -> Result<T, ConfigError> {
    T::deserialize(typed::Typed(value))
}
