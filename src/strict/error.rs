//! What is wrong with a configuration, and where.

use std::fmt;

use serde::de::{Error, Expected, Unexpected};

use super::choices;
use crate::decimal::Written;

/// The longest path and message, in characters: they quote the user's keys and values and end in a log line.
const LONGEST: usize = 600;

/// The first thing found wrong in a configuration. Displayed as `path: message`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// Where: `pool.endpoints[1].address`; empty if it is the document as a whole.
    pub path: String,
    /// What is wrong and what would be right.
    pub message: String,
}

impl ConfigError {
    /// An error at `path`, which begins at the object being checked.
    pub fn at(path: impl fmt::Display, message: impl fmt::Display) -> Self {
        Self::short(&path, &message)
    }

    // Not one for each pair of types.
    #[cold]
    #[inline(never)]
    fn short(path: &dyn fmt::Display, message: &dyn fmt::Display) -> Self {
        let short = |text: &dyn fmt::Display| text.to_string().chars().take(LONGEST).collect();
        Self { path: short(path), message: short(message) }
    }

    /// The same error seen from the object that holds the checked one as `parent`.
    #[must_use]
    #[cold]
    #[inline(never)]
    pub fn within(mut self, parent: &str) -> Self {
        let parent: String = parent.chars().take(LONGEST).collect();
        let dot = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        self.path = format!("{parent}{dot}{}", self.path);
        self
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for ConfigError {}

/// Serde's complaints in words for a person.
impl Error for ConfigError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::at("", message)
    }

    fn invalid_type(is: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let is = match is {
            Unexpected::Seq => "list".into(),
            Unexpected::Map => "object".into(),
            Unexpected::Unit => "null".into(),
            Unexpected::Bool(value) => format!("boolean `{value}`"),
            Unexpected::Unsigned(value) => format!("integer `{value}`"),
            Unexpected::Signed(value) => format!("integer `{value}`"),
            Unexpected::Float(value) => format!("number `{}`", Written(value)),
            Unexpected::Str(text) => format!("string {text:?}"),
            // JSON has no other types.
            _ => "something else".to_owned(),
        };
        Self::at("", format_args!("invalid type: {is}, expected {expected}"))
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        if expected.is_empty() {
            return Self::at(field, "unknown field; no field is known here");
        }
        Self::at(field, format_args!("unknown field; {}", choices(field, expected.iter().copied())))
    }

    fn unknown_variant(value: &str, expected: &'static [&'static str]) -> Self {
        Self::at("", format_args!("unknown value {value:?}; {}", choices(value, expected.iter().copied())))
    }
}
