//! How an endpoint is chosen.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::strict::readable;
use super::{ConfigError, choices, object, objects, saturation};
use crate::schedule::registry::{FILTERS, PICKERS, Plugin, SCORERS};
use crate::schedule::{Profile, Weighted};

/// How an endpoint is chosen: the name of a ready profile, or filters, then scorers, then one picker. A profile that is
/// written out replaces the default one whole; what it does not name does not run.
#[derive(Deserialize)]
#[cfg_attr(test, derive(Debug, PartialEq))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenProfile {
    /// Each takes candidates out, in this order. Without any, every endpoint is a candidate.
    #[serde(default, deserialize_with = "objects")]
    pub(super) filters: Vec<WrittenPlugin>,
    /// Each scores every candidate from 0 to 1; the sum of scores times weights ranks them. Without any, all are equal.
    #[serde(default, deserialize_with = "objects")]
    pub(super) scorers: Vec<WrittenScorer>,
    /// Chooses by that sum. Exactly one.
    #[serde(deserialize_with = "object")]
    pub(super) picker: WrittenPlugin,
}

/// A filter, a picker or a detector.
#[derive(Deserialize)]
#[cfg_attr(test, derive(Debug, PartialEq))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenPlugin {
    /// Name of the plugin; see the list of plugins below.
    #[serde(rename = "type")]
    pub(super) kind: String,
    /// The plugin's own parameters.
    #[serde(default)]
    pub(super) parameters: Map<String, Value>,
}

/// A scorer and its weight.
#[derive(Deserialize)]
#[cfg_attr(test, derive(Debug, PartialEq))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenScorer {
    /// Name of the plugin; see the list of plugins below.
    #[serde(rename = "type")]
    pub(super) kind: String,
    /// What the score is multiplied by, 0 or more. Weights need not add up to anything.
    #[serde(default = "one")]
    pub(super) weight: f64,
    /// The plugin's own parameters.
    #[serde(default)]
    pub(super) parameters: Map<String, Value>,
}

fn one() -> f64 {
    1.0
}

impl WrittenProfile {
    /// Looks every plugin up and builds it from its parameters.
    /// Signals are read once in `interval`.
    pub(super) fn resolve(self, interval: Duration) -> Result<Profile, ConfigError> {
        let filters = self.filters.into_iter().enumerate().map(|(i, filter)| {
            let path = format!("filters[{i}]");
            let (name, mut filter) = filter.build(FILTERS, &path)?;
            saturation::fit(filter.staleness(), interval).map_err(|error| error.within(&path))?;
            Ok((name, filter))
        });
        let scorers = self.scorers.into_iter().enumerate().map(|(i, scorer)| {
            let path = format!("scorers[{i}]");
            let WrittenScorer { kind, weight, parameters } = scorer;
            if !(weight.is_finite() && weight >= 0.0) {
                return Err(ConfigError::at("weight", format!("{weight} is not a weight of 0 or more")).within(&path));
            }
            let (name, scorer) = WrittenPlugin { kind, parameters }.build(SCORERS, &path)?;
            Ok(Weighted { name, weight, scorer })
        });
        Ok(Profile {
            filters: filters.collect::<Result<_, _>>()?,
            scorers: scorers.collect::<Result<_, _>>()?,
            picker: self.picker.build(PICKERS, "picker")?,
        })
    }
}

impl WrittenPlugin {
    pub(super) fn build<T: ?Sized>(
        self,
        table: &'static [Plugin<T>],
        path: &str,
    ) -> Result<(&'static str, Box<T>), ConfigError> {
        let Self { kind, parameters } = self;
        let plugin = table.iter().find(|plugin| plugin.name == kind).ok_or_else(|| {
            let known: Vec<_> = table.iter().map(|plugin| plugin.name).collect();
            ConfigError::at("type", format!("unknown plugin {kind:?}; {}", choices(&kind, known))).within(path)
        })?;
        let built = plugin
            .build(Value::Object(parameters))
            .map_err(|error| readable(error).within("parameters").within(path))?;
        Ok((plugin.name, built))
    }
}

#[cfg(test)]
mod tests {
    use super::super::load;

    #[track_caller]
    fn refused(profile: &str, message: &str) {
        let json = format!(r#"{{"pool":{{"endpoints":[{{"address":"10.0.0.1:8000"}}]}},"profile":{profile}}}"#);
        assert_eq!(load(json.as_bytes()).unwrap_err().to_string(), message);
    }

    #[test]
    fn an_unknown_plugin_is_refused_with_the_known_ones() {
        refused(
            r#"{"scorers":[{"type":"queue-scorer"},{"type":"prefix-cache"}],"picker":{"type":"random-picker"}}"#,
            "profile.scorers[1].type: unknown plugin \"prefix-cache\"; known here: `queue-scorer`, \
             `running-requests-size-scorer`, `kv-cache-utilization-scorer`, `prefix-cache-scorer`, \
             `lora-affinity-scorer`, `active-request-scorer`, `token-load-scorer`, `expected-cost-scorer`",
        );
        refused(
            r#"{"picker":{"type":"max-scorer-picker"}}"#,
            "profile.picker.type: unknown plugin \"max-scorer-picker\"; did you mean `max-score-picker`? \
             Known here: `max-score-picker`, `weighted-random-picker`, `random-picker`, `round-robin-picker`",
        );
    }

    #[test]
    fn a_profile_has_exactly_one_picker() {
        refused(r#"{"scorers":[]}"#, "profile: missing field `picker`");
        refused(
            r#"{"picker":[{"type":"random-picker"},{"type":"max-score-picker"}]}"#,
            "profile.picker: invalid type: list, expected an object",
        );
        refused(
            r#"{"picker":{"type":"random-picker"},"picker":{"type":"max-score-picker"}}"#,
            "profile: the key \"picker\" is written twice",
        );
    }

    #[test]
    fn weights_and_parameters_out_of_range_are_refused_with_their_path() {
        let scorer = |scorer: &str| format!(r#"{{"scorers":[{scorer}],"picker":{{"type":"random-picker"}}}}"#);
        refused(
            &scorer(r#"{"type":"queue-scorer","weight":-2}"#),
            "profile.scorers[0].weight: -2 is not a weight of 0 or more",
        );
        refused(
            &scorer(r#"{"type":"prefix-cache-scorer","parameters":{"matchLengthWeight":1.5}}"#),
            "profile.scorers[0].parameters.matchLengthWeight: 1.5 is not in 0..=1",
        );
        refused(
            r#"{"picker":{"type":"random-picker","parameters":{"maxNumOfEndpoint":2}}}"#,
            "profile.picker.parameters.maxNumOfEndpoint: unknown field; did you mean `maxNumOfEndpoints`? \
             Known here: `maxNumOfEndpoints`",
        );
        refused(
            r#"{"picker":{"type":"random-picker","parameters":{"maxNumOfEndpoints":0}}}"#,
            "profile.picker.parameters.maxNumOfEndpoints: 0 is not a whole number of at least 1",
        );
    }

    #[test]
    fn whole_numbers_may_come_as_floats() {
        let json = br#"{"pool":{"endpoints":[{"address":"10.0.0.1:8000"}]},
            "profile":{"picker":{"type":"max-score-picker","parameters":{"maxNumOfEndpoints":3.0}}}}"#;
        assert!(load(json).is_ok());
    }
}
