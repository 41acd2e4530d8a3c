//! JSON read strictly: a key written twice, an unknown field and a list in place of an object are errors.
//!
//! The document is read twice. The first reading knows no types and finds what is no JSON and keys written twice, which
//! typed maps would swallow. The second reads the types.

use super::{ConfigError, choices};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{DeserializeOwned, Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeSet;
use std::fmt;
use std::marker::PhantomData;

const SMALLEST: &str = r#"{"pool": {"endpoints": [{"address": "10.0.0.1:8000"}]}}"#;

/// Reads a JSON object into `T`.
pub(super) fn parse<T: DeserializeOwned>(json: &[u8]) -> Result<T, ConfigError> {
    let whole = |message| Err(ConfigError::at("", message));
    let json = json.trim_ascii();
    if json.is_empty() {
        return whole(format!("the configuration is empty; the least is {SMALLEST}"));
    }
    typed::<Unique>(json)?;
    if json.first() != Some(&b'{') {
        return whole(format!("the configuration must be a JSON object, such as {SMALLEST}"));
    }
    typed(json)
}

fn typed<T: DeserializeOwned>(json: &[u8]) -> Result<T, ConfigError> {
    let mut reader = serde_json::Deserializer::from_slice(json);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let path = error.path().iter().next().map_or_else(String::new, |_| error.path().to_string());
        readable(path, error.inner())
    })?;
    reader.end().map_err(|error| readable(String::new(), &error))?;
    Ok(value)
}

/// Serde's message in words for a person. Where a path can be given it replaces line and column, which say nothing of a
/// document that a proxy has converted.
pub(super) fn readable(path: String, error: &serde_json::Error) -> ConfigError {
    if !error.is_data() {
        return ConfigError::at("", format!("the configuration is not JSON: {error}"));
    }
    let message = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let message = message.strip_suffix(&place).unwrap_or(&message);

    let mut names = message.split('`').skip(1).step_by(2);
    match names.next() {
        Some(wrong) if message.starts_with("unknown field") => {
            let known: Vec<&str> = names.collect();
            if known.is_empty() {
                return ConfigError::at(path, "unknown field; no field is known here");
            }
            ConfigError::at(path, format!("unknown field; {}", choices(wrong, known)))
        }
        Some(wrong) if message.starts_with("unknown variant") => {
            ConfigError::at(path, format!("unknown value {wrong:?}; {}", choices(wrong, names.collect::<Vec<_>>())))
        }
        // Serde's words for JSON's list and object.
        _ => ConfigError::at(
            path,
            message.replace("type: sequence,", "type: list,").replace("type: map,", "type: object,"),
        ),
    }
}

/// Reads an object only. By itself serde also takes a list as a struct's fields in order: `"scrape": []` would pass.
///
/// For `#[serde(deserialize_with = "…")]` on a field that holds a struct.
pub(super) fn object<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<T, D::Error> {
    Object::deserialize(deserializer).map(|Object(value)| value)
}

/// Reads a list of objects only, like [`object`].
pub(super) fn objects<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    struct List<T>(PhantomData<T>);
    impl<'de, T: Deserialize<'de>> Visitor<'de> for List<T> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list of objects")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
            let objects: Vec<Object<T>> = Deserialize::deserialize(SeqAccessDeserializer::new(seq))?;
            Ok(objects.into_iter().map(|Object(value)| value).collect())
        }
    }
    deserializer.deserialize_seq(List(PhantomData))
}

struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Map<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Map<T> {
            type Value = T;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map))
            }
        }
        deserializer.deserialize_map(Map(PhantomData)).map(Object)
    }
}

/// Any JSON in which no object has a key twice.
struct Unique;

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for Unique {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self, A::Error> {
        while seq.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self, A::Error> {
        let mut keys = BTreeSet::new();
        while let Some(key) = map.next_key::<String>()? {
            if keys.contains(&key) {
                return Err(A::Error::custom(format!("the key {key:?} is written twice")));
            }
            map.next_value::<Self>()?;
            keys.insert(key);
        }
        Ok(self)
    }
}
