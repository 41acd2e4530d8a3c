//! Any JSON in which no object has a key twice.

use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::ConfigError;

/// Reads a document.
pub(super) fn read(json: &[u8]) -> Result<Value, ConfigError> {
    let mut reader = serde_json::Deserializer::from_slice(json);
    let mut path = Vec::new();
    let value = Unique { path: &mut path }.deserialize(&mut reader);
    value.and_then(|value| reader.end().map(|()| value)).map_err(|error| {
        if !error.is_data() {
            return ConfigError::at("", format!("the configuration is not JSON: {error}"));
        }
        // Line and column say nothing of a document that a proxy has converted.
        let message = error.to_string();
        let place = format!(" at line {} column {}", error.line(), error.column());
        let error = ConfigError::at("", message.strip_suffix(&place).unwrap_or(&message));
        path.iter().rev().fold(error, |error, step| error.within(step))
    })
}

/// Reads a value that stands at `path`, and leaves there where it met an error.
struct Unique<'a> {
    path: &'a mut Vec<String>,
}

impl<'de> DeserializeSeed<'de> for Unique<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Unique<'_> {
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
        self.path.push("[0]".to_owned());
        while let Some(value) = seq.next_element_seed(Unique { path: self.path })? {
            list.push(value);
            self.path.pop();
            self.path.push(format!("[{}]", list.len()));
        }
        self.path.pop();
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            if object.contains_key(&key) {
                return Err(A::Error::custom(format!("the key {key:?} is written twice")));
            }
            self.path.push(key.clone());
            let value = map.next_value_seed(Unique { path: self.path })?;
            self.path.pop();
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}
