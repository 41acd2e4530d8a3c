//! A profile by name, or written out.

use std::fmt;

use serde::Deserializer;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Error, MapAccess, Visitor};
use serde_json::{Map, json};

use super::choices;
use super::plugin::WrittenPlugin;
use super::profile::{WrittenProfile, WrittenScorer};
use crate::schedule::ready::{DEFAULT, ENDPOINTS, READY, Ready};

/// For `#[serde(deserialize_with = "…")]`: the profile itself, or the ready one of that name.
pub(super) fn named_or_written<'de, D: Deserializer<'de>>(deserializer: D) -> Result<WrittenProfile, D::Error> {
    deserializer.deserialize_any(NamedOrWritten)
}

/// The same for a field that may be left out.
pub(super) fn some_named_or_written<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<WrittenProfile>, D::Error> {
    named_or_written(deserializer).map(Some)
}

/// What [`named_or_written`] takes.
pub(super) struct NamedOrWritten;

impl<'de> Visitor<'de> for NamedOrWritten {
    type Value = WrittenProfile;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a profile or an object")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<WrittenProfile, E> {
        let unknown = || {
            let known: Vec<_> = READY.iter().map(|ready| ready.name).collect();
            E::custom(format!("unknown profile {name:?}; {}", choices(name, known)))
        };
        READY.iter().find(|ready| ready.name == name).map(|ready| (*ready).into()).ok_or_else(unknown)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<WrittenProfile, A::Error> {
        WrittenProfile::deserialize(MapAccessDeserializer::new(map))
    }
}

impl From<&Ready> for WrittenProfile {
    fn from(ready: &Ready) -> Self {
        let plugin = |kind: &str| WrittenPlugin { kind: kind.into(), parameters: Map::new() };
        let scorers = ready.scorers.iter().map(|(kind, weight)| WrittenScorer {
            kind: (*kind).into(),
            weight: *weight,
            parameters: Map::new(),
        });
        Self {
            filters: ready.filters.iter().map(|kind| plugin(kind)).collect(),
            scorers: scorers.collect(),
            picker: WrittenPlugin {
                parameters: Map::from_iter([("maxNumOfEndpoints".into(), json!(ENDPOINTS))]),
                ..plugin(ready.picker)
            },
        }
    }
}

impl Default for WrittenProfile {
    fn default() -> Self {
        DEFAULT.into()
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for NamedOrWritten {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "named_or_written".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let written = generator.subschema_for::<WrittenProfile>();
        let named = READY.iter().map(|ready| json!({ "const": ready.name, "description": ready.summary }));
        let named: serde_json::Value = named.collect();
        schemars::json_schema!({ "anyOf": [{ "title": "name of a ready profile", "oneOf": named }, written] })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::config::load;

    fn with(profile: &Value) -> String {
        json!({ "pool": { "endpoints": [{ "address": "10.0.0.1:8000" }] }, "profile": profile }).to_string()
    }

    #[test]
    fn every_name_stands_for_what_the_reference_writes_out() {
        for ready in READY {
            let written: Value = serde_json::from_str(&ready.to_string()).unwrap();
            let read = serde_json::from_value::<WrittenProfile>(written.clone()).unwrap();
            assert_eq!(read, ready.into(), "{}", ready.name);
            let [named, written] =
                [&json!(ready.name), &written].map(|profile| load(with(profile).as_bytes()).unwrap());
            assert_eq!(format!("{:?}", named.profile), format!("{:?}", written.profile));
        }
    }

    #[test]
    fn one_thing_in_a_ready_profile_can_be_changed() {
        let mut written: Value = serde_json::from_str(&DEFAULT.to_string()).unwrap();
        written["scorers"][0]["parameters"] = json!({ "latencyGoal": 1 });
        assert!(load(with(&written).as_bytes()).is_ok());
    }

    #[test]
    fn without_a_profile_the_expected_cost_decides() {
        let json = br#"{"pool":{"endpoints":[{"address":"10.0.0.1:8000"}]}}"#;
        let named = load(with(&json!("expected-cost")).as_bytes()).unwrap();
        assert_eq!(format!("{:?}", load(json).unwrap().profile), format!("{:?}", named.profile));
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_known_ones() {
        for (wrong, message) in [
            (
                json!("expected-costs"),
                "profile: unknown profile \"expected-costs\"; did you mean `expected-cost`? Known here: `expected-cost`, \
                 `sticky-until-saturated`, `epp-default`, `least-request`, `round-robin`",
            ),
            (json!(["round-robin"]), "profile: invalid type: list, expected the name of a profile or an object"),
            (Value::Null, "profile: invalid type: null, expected the name of a profile or an object"),
        ] {
            assert_eq!(load(with(&wrong).as_bytes()).unwrap_err().to_string(), message);
        }
    }
}
