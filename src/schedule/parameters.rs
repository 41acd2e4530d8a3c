//! What plugin parameters have in common: numbers with their range, and objects inside them.

use serde::{Deserialize, Deserializer, de};
use serde_json::{Map, Value};

/// Of a plugin that takes none.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NoParameters {}

/// A number in 0..=1.
pub(super) fn share<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let value = f64::deserialize(deserializer)?;
    if (0.0..=1.0).contains(&value) { Ok(value) } else { Err(de::Error::custom(format!("{value} is not in 0..=1"))) }
}

/// A whole number of at least 1.
pub(super) fn positive<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    at_least(1, deserializer)
}

/// A whole number of at least 0.
pub(super) fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    at_least(0, deserializer)
}

/// Read as a float because a host may hand over 3 as 3.0.
fn at_least<'de, D: Deserializer<'de>>(min: u32, deserializer: D) -> Result<u32, D::Error> {
    let value = f64::deserialize(deserializer)?;
    if value.fract() == 0.0 && (f64::from(min)..=f64::from(u32::MAX)).contains(&value) {
        Ok(value as u32)
    } else {
        Err(de::Error::custom(format!("{value} is not a whole number of at least {min}")))
    }
}

/// Refuses fields of an object that are not `known`, in serde's words. For lists of small objects that are read by hand: a
/// struct of their own would cost kilobytes of module each.
pub(super) fn only(object: &Map<String, Value>, known: &[&str]) -> Result<(), String> {
    match object.keys().find(|key| !known.contains(&key.as_str())) {
        Some(key) => Err(unknown("field", key, known)),
        None => Ok(()),
    }
}

/// Serde's words for a field or variant that is not `known`.
pub(super) fn unknown(what: &str, wrong: &str, known: &[&str]) -> String {
    format!("unknown {what} `{wrong}`, expected one of `{}`", known.join("`, `"))
}
