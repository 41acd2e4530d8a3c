//! Whole numbers with their range.

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;

/// A whole number from `MIN` to `MAX`. `1e2` and `100.0` are whole too: a proxy that keeps the configuration as a
/// Protobuf `Struct` knows only floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(serde::Serialize))]
pub(super) struct Whole<const MIN: u32, const MAX: u32>(u32);

impl<const MIN: u32, const MAX: u32> Whole<MIN, MAX> {
    /// `value`, brought into the range.
    pub(super) const fn of(value: u32) -> Self {
        Self(if value < MIN {
            MIN
        } else if value > MAX {
            MAX
        } else {
            value
        })
    }

    /// The number.
    pub(super) const fn get(self) -> u32 {
        self.0
    }
}

impl<'de, const MIN: u32, const MAX: u32> Deserialize<'de> for Whole<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Range { min: MIN, max: MAX }).map(Self)
    }
}

struct Range {
    min: u32,
    max: u32,
}

impl Range {
    fn check<E: Error>(&self, number: impl fmt::Debug, value: Option<u32>) -> Result<u32, E> {
        value
            .filter(|value| (self.min..=self.max).contains(value))
            .ok_or_else(|| E::custom(format!("{number:?} is not a whole number from {} to {}", self.min, self.max)))
    }
}

impl Visitor<'_> for Range {
    type Value = u32;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a whole number from {} to {}", self.min, self.max)
    }

    fn visit_u64<E: Error>(self, v: u64) -> Result<u32, E> {
        self.check(v, u32::try_from(v).ok())
    }

    fn visit_i64<E: Error>(self, v: i64) -> Result<u32, E> {
        self.check(v, u32::try_from(v).ok())
    }

    fn visit_f64<E: Error>(self, v: f64) -> Result<u32, E> {
        let whole = v.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&v);
        self.check(v, whole.then_some(v as u32))
    }
}

#[cfg(feature = "schema")]
impl<const MIN: u32, const MAX: u32> schemars::JsonSchema for Whole<MIN, MAX> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("whole_{MIN}_{MAX}").into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "title": format!("whole number, {MIN} to {MAX}"), "type": "integer", "minimum": MIN, "maximum": MAX
        })
    }
}
