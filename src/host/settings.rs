//! The configuration's text, whichever way it was written into the proxy's own configuration.
//!
//! Envoy passes the value of a `StringValue` as it is, but a `Struct`, in which the configuration can be plain YAML with
//! comments, as protobuf bytes.

use prost::Message;
use prost_types::value::Kind;
use prost_types::{Struct, Value};
use serde_json::{Map, Number, Value as Json};

/// Up to here every integer has a double of its own.
const MAX_INTEGER: f64 = 9_007_199_254_740_992.0;

/// JSON from what the proxy passed. What is neither JSON nor a `Struct` comes back as it is, for the parser to complain.
pub(super) fn json(passed: Vec<u8>) -> Vec<u8> {
    if passed.is_empty() || serde_json::from_slice::<serde::de::IgnoredAny>(&passed).is_ok() {
        return passed;
    }
    match Struct::decode(passed.as_slice()) {
        Ok(fields) => object(fields).to_string().into_bytes(),
        Err(_) => passed,
    }
}

fn object(from: Struct) -> Json {
    let mut object = Map::new();
    for (name, value) in from.fields {
        object.insert(name, any(value));
    }
    Json::Object(object)
}

fn any(from: Value) -> Json {
    match from.kind {
        None | Some(Kind::NullValue(_)) => Json::Null,
        Some(Kind::BoolValue(value)) => Json::Bool(value),
        Some(Kind::NumberValue(value)) => number(value),
        Some(Kind::StringValue(value)) => Json::String(value),
        Some(Kind::ListValue(list)) => Json::Array(list.values.into_iter().map(any).collect()),
        Some(Kind::StructValue(value)) => object(value),
    }
}

/// Every number of a `Struct` is a double; one without a fraction was written as an integer.
fn number(value: f64) -> Json {
    if value.fract() == 0.0 && value.abs() <= MAX_INTEGER {
        return Json::from(value as i64);
    }
    Number::from_f64(value).map_or(Json::Null, Json::Number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(kind: Kind) -> Value {
        Value { kind: Some(kind) }
    }

    fn as_struct(fields: impl IntoIterator<Item = (&'static str, Kind)>) -> Struct {
        Struct { fields: fields.into_iter().map(|(name, kind)| (name.into(), value(kind))).collect() }
    }

    #[test]
    fn a_struct_reads_like_the_yaml_it_was_written_as() {
        let inner = as_struct([("weight", Kind::NumberValue(2.0)), ("off", Kind::BoolValue(false))]);
        let list = prost_types::ListValue { values: vec![value(Kind::StructValue(inner)), value(Kind::NullValue(0))] };
        let whole = as_struct([
            ("name", Kind::StringValue("a\"b".into())),
            ("list", Kind::ListValue(list)),
            ("share", Kind::NumberValue(0.25)),
            ("bytes", Kind::NumberValue(262_144.0)),
            ("below", Kind::NumberValue(-1.0)),
        ]);
        let read: Json = serde_json::from_slice(&json(whole.encode_to_vec())).unwrap();
        assert_eq!(
            read,
            serde_json::json!({
                "name": "a\"b", "list": [{"weight": 2, "off": false}, null], "share": 0.25, "bytes": 262_144, "below": -1
            })
        );
        assert!(read["bytes"].is_u64());
    }

    #[test]
    fn json_stays_as_written() {
        for text in ["", "{}", "\n{ \"a\": 1 }\n", "[]"] {
            assert_eq!(json(text.into()), text.as_bytes());
        }
    }

    #[test]
    fn what_is_neither_comes_back_for_the_parser_to_complain() {
        for text in ["{ \"a\": 1", "pool: here", "\n{ \"a\": ", "\u{1f}"] {
            assert_eq!(json(text.into()), text.as_bytes());
        }
    }

    #[test]
    fn a_struct_cut_anywhere_does_no_harm() {
        let inner = as_struct([("b", Kind::NumberValue(0.5))]);
        let bytes = as_struct([("a", Kind::StructValue(inner))]).encode_to_vec();
        for end in 0..bytes.len() {
            json(bytes[..end].to_vec());
        }
    }
}
