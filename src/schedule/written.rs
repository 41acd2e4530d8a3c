//! A profile as the user wrote it.

use serde::{Deserialize, Deserializer, de};
use serde_json::Value;

use super::registry::{BadParameters, FILTERS, PICKERS, Plugin, SCORERS};
use super::{Profile, Weighted};

/// How a request is placed: filters, then scorers, then one picker.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct WrittenProfile {
    /// Each takes candidates out, in this order. None: every endpoint is a candidate.
    #[serde(default)]
    pub filters: Vec<WrittenPlugin>,
    /// Each scores every candidate in 0..=1; the sum of scores times weights ranks them. None: all are equal.
    #[serde(default)]
    pub scorers: Vec<WrittenScorer>,
    /// Chooses by total. Exactly one.
    pub picker: WrittenPlugin,
}

/// A filter or a picker.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct WrittenPlugin {
    /// Name of the plugin.
    #[serde(rename = "type")]
    pub kind: String,
    /// The plugin's own parameters.
    #[serde(default)]
    pub parameters: Value,
}

/// A scorer and its weight.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct WrittenScorer {
    /// Name of the plugin.
    #[serde(rename = "type")]
    pub kind: String,
    /// What its score is multiplied by; 0 or more. Weights need not add up to anything.
    #[serde(default = "one")]
    pub weight: f64,
    /// The plugin's own parameters.
    #[serde(default)]
    pub parameters: Value,
}

/// Why a profile is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileError {
    /// Path inside the profile, such as `scorers[2].weight`.
    pub path: String,
    /// What is wrong and what is allowed.
    pub message: String,
}

impl Default for WrittenProfile {
    /// What a pool gets that names no profile.
    fn default() -> Self {
        let plugin = |kind: &str| WrittenPlugin { kind: kind.into(), parameters: Value::Null };
        let scorer = |kind: &str, weight| WrittenScorer { kind: kind.into(), weight, parameters: Value::Null };
        Self {
            filters: vec![plugin("healthy"), plugin("lora-capacity")],
            scorers: vec![
                scorer("queue-scorer", 2.0),
                scorer("kv-cache-utilization-scorer", 2.0),
                scorer("prefix-cache-scorer", 3.0),
                scorer("lora-affinity-scorer", 1.0),
                scorer("active-request-scorer", 2.0),
            ],
            picker: WrittenPlugin {
                kind: "max-score-picker".into(),
                parameters: serde_json::json!({ "maxNumOfEndpoints": 3 }),
            },
        }
    }
}

impl WrittenProfile {
    /// Looks every plugin up and builds it from its parameters.
    pub fn resolve(&self) -> Result<Profile, ProfileError> {
        let filters = self
            .filters
            .iter()
            .enumerate()
            .map(|(i, filter)| build(FILTERS, &format!("filters[{i}]"), &filter.kind, &filter.parameters));
        let scorers = self.scorers.iter().enumerate().map(|(i, scorer)| {
            let path = format!("scorers[{i}]");
            if !(scorer.weight.is_finite() && scorer.weight >= 0.0) {
                let message = format!("{} is not a weight; it must be 0 or more", scorer.weight);
                return Err(ProfileError { path: format!("{path}.weight"), message });
            }
            let (name, built) = build(SCORERS, &path, &scorer.kind, &scorer.parameters)?;
            Ok(Weighted { name, weight: scorer.weight, scorer: built })
        });
        Ok(Profile {
            filters: filters.collect::<Result<_, _>>()?,
            scorers: scorers.collect::<Result<_, _>>()?,
            picker: build(PICKERS, "picker", &self.picker.kind, &self.picker.parameters)?,
        })
    }
}

fn build<T: ?Sized>(
    table: &'static [Plugin<T>],
    path: &str,
    kind: &str,
    parameters: &Value,
) -> Result<(&'static str, Box<T>), ProfileError> {
    let plugin = Plugin::find(table, kind).map_err(|message| ProfileError { path: format!("{path}.type"), message })?;
    let built = plugin.build(parameters).map_err(|BadParameters { path: below, message }| {
        let dot = if below.is_empty() { "" } else { "." };
        ProfileError { path: format!("{path}.parameters{dot}{below}"), message }
    })?;
    Ok((plugin.name, built))
}

fn one() -> f64 {
    1.0
}

/// A number in 0..=1.
pub(super) fn share<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let value = f64::deserialize(deserializer)?;
    if (0.0..=1.0).contains(&value) { Ok(value) } else { Err(de::Error::custom(format!("{value} is not in 0..=1"))) }
}

/// A whole number of at least 1.
pub(super) fn positive<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    at_least(1, deserializer)
}

/// A whole number of at least 0.
pub(super) fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    at_least(0, deserializer)
}

/// Read as a float because a host may hand over 3 as 3.0.
fn at_least<'de, D: Deserializer<'de>>(min: u32, deserializer: D) -> Result<u32, D::Error> {
    let value = f64::deserialize(deserializer)?;
    if value.fract() == 0.0 && (f64::from(min)..=f64::from(u32::MAX)).contains(&value) {
        Ok(value as u32)
    } else {
        Err(de::Error::custom(format!("{value} is not a whole number of at least {min}")))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(profile: Value) -> String {
        let written: WrittenProfile = serde_json::from_value(profile).unwrap();
        let error = written.resolve().unwrap_err();
        format!("{}: {}", error.path, error.message)
    }

    #[test]
    fn the_default_profile_resolves() {
        let profile = WrittenProfile::default().resolve().unwrap();
        assert_eq!((profile.filters.len(), profile.scorers.len()), (2, 5));
    }

    #[test]
    fn an_unknown_plugin_is_refused_with_the_known_ones() {
        assert_eq!(
            refused(json!({ "scorers": [{ "type": "queue" }], "picker": { "type": "random-picker" } })),
            "scorers[0].type: unknown plugin `queue`; known are queue-scorer, running-requests-size-scorer, \
             kv-cache-utilization-scorer, prefix-cache-scorer, lora-affinity-scorer, active-request-scorer"
        );
        assert_eq!(
            refused(json!({ "picker": { "type": "best" } })),
            "picker.type: unknown plugin `best`; known are max-score-picker, weighted-random-picker, random-picker"
        );
    }

    #[test]
    fn weights_and_parameters_out_of_range_are_refused_with_their_path() {
        let picker = json!({ "type": "random-picker" });
        assert_eq!(
            refused(json!({ "scorers": [{ "type": "queue-scorer", "weight": -2 }], "picker": picker })),
            "scorers[0].weight: -2 is not a weight; it must be 0 or more"
        );
        let scorer = json!({ "type": "prefix-cache-scorer", "parameters": { "matchLengthWeight": 1.5 } });
        assert_eq!(
            refused(json!({ "scorers": [scorer], "picker": picker })),
            "scorers[0].parameters.matchLengthWeight: 1.5 is not in 0..=1"
        );
        assert_eq!(
            refused(json!({ "picker": { "type": "random-picker", "parameters": { "max": 2 } } })),
            "picker.parameters.max: unknown field `max`, expected `maxNumOfEndpoints`"
        );
        assert_eq!(
            refused(json!({ "picker": { "type": "random-picker", "parameters": { "maxNumOfEndpoints": 0 } } })),
            "picker.parameters.maxNumOfEndpoints: 0 is not a whole number of at least 1"
        );
    }

    #[test]
    fn whole_numbers_may_come_as_floats() {
        let picker = json!({ "type": "max-score-picker", "parameters": { "maxNumOfEndpoints": 3.0 } });
        let written: WrittenProfile = serde_json::from_value(json!({ "picker": picker })).unwrap();
        assert!(written.resolve().is_ok());
    }
}
