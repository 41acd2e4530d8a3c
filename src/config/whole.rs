//! Whole numbers with their range.

use crate::decimal::Written;
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
        let range = Range { min: MIN.into(), max: MAX.into() };
        // Within the range, so it fits.
        deserializer.deserialize_any(range).map(|number| Self(number as u32))
    }
}

/// A whole number from `MIN` to `MAX`, which may be below zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(serde::Serialize))]
pub(super) struct Signed<const MIN: i32, const MAX: i32>(i32);

impl<const MIN: i32, const MAX: i32> Signed<MIN, MAX> {
    /// `value`, which is in the range.
    pub(super) const fn of(value: i32) -> Self {
        Self(value)
    }

    /// The number.
    pub(super) const fn get(self) -> i32 {
        self.0
    }
}

impl<'de, const MIN: i32, const MAX: i32> Deserialize<'de> for Signed<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let range = Range { min: MIN.into(), max: MAX.into() };
        deserializer.deserialize_any(range).map(|number| Self(number as i32))
    }
}

struct Range {
    min: i64,
    max: i64,
}

impl Range {
    fn check<E: Error>(&self, number: &dyn fmt::Display, value: Option<i64>) -> Result<i64, E> {
        value
            .filter(|value| (self.min..=self.max).contains(value))
            .ok_or_else(|| E::custom(format!("{number} is not a whole number from {} to {}", self.min, self.max)))
    }
}

impl Visitor<'_> for Range {
    type Value = i64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a whole number from {} to {}", self.min, self.max)
    }

    fn visit_u64<E: Error>(self, v: u64) -> Result<i64, E> {
        self.check(&v, i64::try_from(v).ok())
    }

    fn visit_i64<E: Error>(self, v: i64) -> Result<i64, E> {
        self.check(&v, Some(v))
    }

    fn visit_f64<E: Error>(self, v: f64) -> Result<i64, E> {
        let whole = v.fract() == 0.0 && v.abs() <= f64::from(u32::MAX);
        self.check(&Written(v), whole.then_some(v as i64))
    }
}

#[cfg(feature = "schema")]
mod schema {
    use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
    use std::borrow::Cow;

    fn whole(min: i64, max: i64) -> Schema {
        json_schema!({
            "title": format!("whole number, {min} to {max}"), "type": "integer", "minimum": min, "maximum": max
        })
    }

    impl<const MIN: u32, const MAX: u32> JsonSchema for super::Whole<MIN, MAX> {
        fn inline_schema() -> bool {
            true
        }

        fn schema_name() -> Cow<'static, str> {
            format!("whole_{MIN}_{MAX}").into()
        }

        fn json_schema(_: &mut SchemaGenerator) -> Schema {
            whole(MIN.into(), MAX.into())
        }
    }

    impl<const MIN: i32, const MAX: i32> JsonSchema for super::Signed<MIN, MAX> {
        fn inline_schema() -> bool {
            true
        }

        fn schema_name() -> Cow<'static, str> {
            format!("signed_{MIN}_{MAX}").into()
        }

        fn json_schema(_: &mut SchemaGenerator) -> Schema {
            whole(MIN.into(), MAX.into())
        }
    }
}
