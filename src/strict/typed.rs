//! Types from JSON values.
//!
//! Serde's own reader of values knows no paths, and takes a list for a struct's fields in their order. A wrapper that adds
//! paths to any reader is there once more for each type, which made it a tenth of the module. This reader adds the path to
//! an error on its way out, step by step.

use serde::de::value::StringDeserializer;
use serde::de::{DeserializeSeed, Deserializer, Error, IntoDeserializer, MapAccess, SeqAccess, Unexpected, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::{Map, Value, map};
use std::vec;

use super::ConfigError;

/// A value to be read.
pub(super) struct Typed(pub(super) Value);

impl Typed {
    fn is_not(&self, expected: &str) -> ConfigError {
        let is = match &self.0 {
            Value::Null => Unexpected::Unit,
            Value::Bool(value) => Unexpected::Bool(*value),
            Value::Number(number) => match (number.as_u64(), number.as_i64()) {
                (Some(value), _) => Unexpected::Unsigned(value),
                (_, Some(value)) => Unexpected::Signed(value),
                _ => Unexpected::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            Value::String(text) => Unexpected::Str(text),
            Value::Array(_) => Unexpected::Seq,
            Value::Object(_) => Unexpected::Map,
        };
        ConfigError::invalid_type(is, &expected)
    }
}

impl<'de> Deserializer<'de> for Typed {
    type Error = ConfigError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConfigError> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(value),
            Value::Number(number) => match (number.as_u64(), number.as_i64()) {
                (Some(value), _) => visitor.visit_u64(value),
                (_, Some(value)) => visitor.visit_i64(value),
                _ => visitor.visit_f64(number.as_f64().unwrap_or(f64::NAN)),
            },
            Value::String(text) => visitor.visit_string(text),
            Value::Array(list) => visitor.visit_seq(List { left: list.into_iter(), at: 0 }),
            Value::Object(fields) => visitor.visit_map(Fields::of(fields)),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConfigError> {
        if self.0.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConfigError> {
        match self.0 {
            Value::Array(list) => visitor.visit_seq(List { left: list.into_iter(), at: 0 }),
            _ => Err(self.is_not("a list")),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConfigError> {
        match self.0 {
            Value::Object(fields) => visitor.visit_map(Fields::of(fields)),
            _ => Err(self.is_not("an object")),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ConfigError> {
        self.deserialize_map(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, ConfigError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ConfigError> {
        match self.0 {
            Value::String(text) => visitor.visit_enum(text.into_deserializer()),
            _ => Err(self.is_not("a string")),
        }
    }

    /// Envoy hands a fraction that was written in YAML over as text.
    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConfigError> {
        match self.0.as_str().and_then(|text| text.parse().ok()).filter(|number: &f64| number.is_finite()) {
            Some(number) => visitor.visit_f64(number),
            None => self.deserialize_any(visitor),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 char str string bytes byte_buf unit unit_struct tuple
        tuple_struct identifier ignored_any
    }
}

struct List {
    left: vec::IntoIter<Value>,
    at: usize,
}

impl<'de> SeqAccess<'de> for List {
    type Error = ConfigError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, ConfigError> {
        let Some(value) = self.left.next() else { return Ok(None) };
        let element = seed.deserialize(Typed(value)).map_err(|error| error.within(&format!("[{}]", self.at)));
        self.at += 1;
        element.map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left.len())
    }
}

struct Fields {
    left: map::IntoIter,
    /// The one whose key was read last.
    field: (String, Value),
}

impl Fields {
    fn of(fields: Map<String, Value>) -> Self {
        Self { left: fields.into_iter(), field: Default::default() }
    }
}

impl<'de> MapAccess<'de> for Fields {
    type Error = ConfigError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, ConfigError> {
        let Some(field) = self.left.next() else { return Ok(None) };
        self.field = field;
        let key: StringDeserializer<ConfigError> = self.field.0.clone().into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, ConfigError> {
        let (key, value) = std::mem::take(&mut self.field);
        seed.deserialize(Typed(value)).map_err(|error| error.within(&key))
    }
}
