//! Durations with a unit and a range.

use crate::decimal;
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::time::Duration;

const FORM: &str = r#"a duration such as "200ms", "1.5s" or "2m""#;

/// A duration from `MIN` to `MAX` milliseconds, written as `200ms`, `1.5s`, `2m` or `1h`. A bare number is refused:
/// whoever writes 200 or 2 may mean either unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period<const MIN: u64, const MAX: u64>(u64);

impl<const MIN: u64, const MAX: u64> Period<MIN, MAX> {
    /// `ms` milliseconds, which are in the range.
    pub const fn ms(ms: u64) -> Self {
        Self(ms)
    }

    /// `duration`, which is in the range.
    pub fn of(duration: Duration) -> Self {
        Self(u64::try_from(duration.as_millis()).unwrap_or(MAX))
    }

    /// The duration.
    pub const fn get(self) -> Duration {
        Duration::from_millis(self.0)
    }
}

/// A duration as one would write it.
pub(crate) struct Written(pub(super) Duration);

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_millis() {
            ms if ms != 0 && ms.is_multiple_of(60_000) => write!(f, "{}m", ms / 60_000),
            ms if ms.is_multiple_of(1000) => write!(f, "{}s", ms / 1000),
            ms => write!(f, "{ms}ms"),
        }
    }
}

/// Whole milliseconds, or `None` if `text` is no duration or finer than that.
fn parse(text: &str) -> Option<u64> {
    let number = text.trim_end_matches(|c: char| c.is_ascii_lowercase());
    let unit = match text.strip_prefix(number)? {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || fraction.len() > 3 {
        return None;
    }
    let thousandths = whole.parse::<u64>().ok()?.checked_mul(1000)?;
    let thousandths = thousandths.checked_add(format!("{fraction:0<3}").parse().ok()?)?.checked_mul(unit)?;
    thousandths.is_multiple_of(1000).then_some(thousandths / 1000)
}

impl<'de, const MIN: u64, const MAX: u64> Deserialize<'de> for Period<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Range { min: MIN, max: MAX }).map(Self)
    }
}

struct Range {
    min: u64,
    max: u64,
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |ms| Written(Duration::from_millis(ms));
        write!(f, "{} to {}", ms(self.min), ms(self.max))
    }
}

impl Visitor<'_> for Range {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(FORM)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<u64, E> {
        let ms = parse(text).ok_or_else(|| E::custom(format!("{text:?} is not {FORM}")))?;
        if (self.min..=self.max).contains(&ms) {
            return Ok(ms);
        }
        Err(E::custom(format!("{text} is out of range: {self}")))
    }

    fn visit_u64<E: Error>(self, v: u64) -> Result<u64, E> {
        Err(E::custom(format!(r#"{v} has no unit: write "{v}ms" or "{v}s""#)))
    }

    fn visit_f64<E: Error>(self, v: f64) -> Result<u64, E> {
        let v = decimal::Written(v);
        Err(E::custom(format!(r#"{v} has no unit: write "{v}ms" or "{v}s""#)))
    }
}

#[cfg(feature = "schema")]
impl<const MIN: u64, const MAX: u64> serde::Serialize for Period<MIN, MAX> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&Written(self.get()))
    }
}

#[cfg(feature = "schema")]
impl<const MIN: u64, const MAX: u64> schemars::JsonSchema for Period<MIN, MAX> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("period_{MIN}_{MAX}").into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "title": format!("duration, {}", Range { min: MIN, max: MAX }),
            "type": "string",
            "pattern": r"^[0-9]+(\.[0-9]{1,3})?(ms|s|m|h)$"
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_with_their_unit() {
        let good = [("100ms", 100), ("2s", 2000), ("5m", 300_000), ("1h", 3_600_000), ("0.1s", 100), ("1.5m", 90_000)];
        for (text, ms) in good {
            assert_eq!(parse(text), Some(ms), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_none() {
        let huge = format!("{}s", u64::MAX);
        for text in [
            "", "s", "ms", "1", "1 s", "1S", "-1s", "+1s", ".5s", "1.s1", "1.2345s", "0.5ms", "1e3ms", "1d", "1s2ms",
            "١s", &huge,
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn durations_are_shown_as_written() {
        for text in ["0s", "20ms", "1500ms", "2s", "1m", "61s"] {
            let ms = parse(text).unwrap();
            assert_eq!(Written(Duration::from_millis(ms)).to_string(), text);
        }
    }
}
