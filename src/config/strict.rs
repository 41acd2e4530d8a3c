//! JSON read strictly: a key written twice, an unknown field and a list in place of an object are errors.
//!
//! The document is read twice. The first reading knows no types and finds what is no JSON and keys written twice, which
//! typed maps would swallow. The second reads the types from what the first one found.

use super::{ConfigError, choices};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{DeserializeOwned, Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Number, Value};
use std::fmt;
use std::marker::PhantomData;

const SMALLEST: &str = r#"{"pool": {"endpoints": [{"address": "10.0.0.1:8000"}]}}"#;

/// Reads a JSON object into `T`.
pub(super) fn parse<T: DeserializeOwned>(json: &[u8]) -> Result<T, ConfigError> {
    let whole = |message| Err(ConfigError::at("", message));
    if json.trim_ascii().is_empty() {
        return whole(format!("the configuration is empty; the least is {SMALLEST}"));
    }
    let mut reader = serde_json::Deserializer::from_slice(json);
    let Unique(value) = serde_path_to_error::deserialize(&mut reader).map_err(readable)?;
    reader.end().map_err(|error| not_json(&error))?;
    if !value.is_object() {
        return whole(format!("the configuration must be a JSON object, such as {SMALLEST}"));
    }
    typed(value)
}

/// Reads the types. Errors name the path.
fn typed<T: DeserializeOwned>(value: Value) -> Result<T, ConfigError> {
    serde_path_to_error::deserialize(value).map_err(readable)
}

/// Serde's message in words for a person.
pub(super) fn readable(error: serde_path_to_error::Error<serde_json::Error>) -> ConfigError {
    let path = error.path().iter().next().map_or_else(String::new, |_| error.path().to_string());
    let error = error.inner();
    if !error.is_data() {
        return not_json(error);
    }
    let message = error.to_string();
    // Line and column say nothing of a document that a proxy has converted.
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

fn not_json(error: &serde_json::Error) -> ConfigError {
    ConfigError::at("", format!("the configuration is not JSON: {error}"))
}

/// Reads an object only. By itself serde also takes a list as a struct's fields in order: `"scrape": []` would pass.
///
/// For `#[serde(deserialize_with = "…")]` on a field that holds a struct.
pub(super) fn object<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<T, D::Error> {
    Object::deserialize(deserializer).map(|Object(value)| value)
}

/// The same for a field that may be left out.
pub(super) fn some_object<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    object(deserializer).map(Some)
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
struct Unique(Value);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UniqueVisitor).map(Self)
    }
}

struct UniqueVisitor;

impl<'de> Visitor<'de> for UniqueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Unique(value)) = seq.next_element()? {
            list.push(value);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            if object.contains_key(&key) {
                return Err(A::Error::custom(format!("the key {key:?} is written twice")));
            }
            let Unique(value) = map.next_value()?;
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}
