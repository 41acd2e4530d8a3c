//! What the parameters of plugins have in common: numbers with their range.

use serde::{Deserialize, Deserializer, de};

use crate::decimal::Written;

/// Of a plugin that takes none.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoParameters {}

/// A number in 0..=1.
pub(crate) fn share<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let value = f64::deserialize(deserializer)?;
    if (0.0..=1.0).contains(&value) {
        Ok(value)
    } else {
        Err(de::Error::custom(format!("{} is not in 0..=1", Written(value))))
    }
}

/// A number above 0 and at most 1.
pub(crate) fn positive_share<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let value = f64::deserialize(deserializer)?;
    if value > 0.0 && value <= 1.0 {
        Ok(value)
    } else {
        Err(de::Error::custom(format!("{} is not above 0 and at most 1", Written(value))))
    }
}

/// A whole number of at least 1.
pub(crate) fn positive<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    at_least(1, deserializer)
}

/// A whole number of at least 0.
pub(crate) fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    at_least(0, deserializer)
}

/// Read as a float because a host may hand over 3 as 3.0.
fn at_least<'de, D: Deserializer<'de>>(min: u32, deserializer: D) -> Result<u32, D::Error> {
    let value = f64::deserialize(deserializer)?;
    if value.fract() == 0.0 && (f64::from(min)..=f64::from(u32::MAX)).contains(&value) {
        Ok(value as u32)
    } else {
        Err(de::Error::custom(format!("{} is not a whole number of at least {min}", Written(value))))
    }
}
