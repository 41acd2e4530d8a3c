//! How an endpoint is chosen.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::plugin::WrittenPlugin;
use super::{ConfigError, saturation};
use crate::decimal::Written;
use crate::schedule::registry::{FILTERS, PICKERS, SCORERS};
use crate::schedule::{Profile, Weighted};

/// How an endpoint is chosen: the name of a ready profile, or filters, then scorers, then one picker. A profile that is
/// written out replaces the default one whole; what it does not name does not run.
#[derive(Deserialize)]
#[cfg_attr(test, derive(Debug, PartialEq))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenProfile {
    /// Each takes candidates out, in this order. Without any, every endpoint is a candidate.
    #[serde(default)]
    pub(super) filters: Vec<WrittenPlugin>,
    /// Each scores every candidate from 0 to 1; the sum of scores times weights ranks them. Without any, all are equal.
    #[serde(default)]
    pub(super) scorers: Vec<WrittenScorer>,
    /// Chooses by that sum. Exactly one.
    pub(super) picker: WrittenPlugin,
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
    /// Looks every plugin up and builds it from its parameters. Signals are read once in `interval`.
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
                return Err(ConfigError::at("weight", format!("{} is not a weight of 0 or more", Written(weight)))
                    .within(&path));
            }
            let (name, scorer) = WrittenPlugin { kind, parameters }.build(SCORERS, &path)?;
            Ok(Weighted { name, weight, scorer })
        });
        let mut filters = filters.collect::<Result<Vec<_>, _>>()?;
        let scorers = scorers.collect::<Result<Vec<Weighted>, _>>()?;
        filters.extend(scorers.iter().filter_map(|Weighted { name, scorer, .. }| Some((*name, scorer.filter()?))));
        Ok(Profile { filters, scorers, picker: self.picker.build(PICKERS, "picker")? })
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
             `lora-affinity-scorer`, `active-request-scorer`, `token-load-scorer`, `load-aware-scorer`, \
             `no-hit-lru-scorer`, `context-length-aware`, `expected-cost-scorer`, `session-affinity-scorer`, \
             `latency-scorer`",
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
    fn parameters_that_are_lists_of_objects_are_refused_with_their_path() {
        let filter = |filter: &str| format!(r#"{{"filters":[{filter}],"picker":{{"type":"random-picker"}}}}"#);
        let utilization = |conditions: &str| {
            filter(&format!(r#"{{"type":"utilization-filter","parameters":{{"conditions":{conditions}}}}}"#))
        };
        refused(
            &utilization(r#"[{"metric":"waiting-queue","maxValue":5},{"metric":"waiting-queu","maxValue":5}]"#),
            "profile.filters[0].parameters.conditions[1].metric: unknown value \"waiting-queu\"; did you mean `waiting-queue`? \
             Known here: `active-requests`, `running-requests`, `waiting-queue`, `kv-cache-utilization`",
        );
        refused(
            &utilization(r#"[{"metric":"waiting-queue","max":5}]"#),
            "profile.filters[0].parameters.conditions[0].max: unknown field; known here: `metric`, `maxValue`",
        );
        refused(
            &utilization(r#"[["waiting-queue", 5]]"#),
            "profile.filters[0].parameters.conditions[0]: invalid type: list, expected an object",
        );
        refused(
            &filter(
                r#"{"type":"label-selector-filter","parameters":{"matchExpressions":[{"key":"a","operator":"In"}]}}"#,
            ),
            "profile.filters[0].parameters.matchExpressions[0]: `In` and `NotIn` need `values`",
        );
        refused(
            &filter(r#"{"type":"decode-filter","parameters":{"role":"decode"}}"#),
            "profile.filters[0].parameters.role: unknown field; no field is known here",
        );
    }

    #[test]
    fn a_label_that_a_plugin_cannot_read_is_refused() {
        let json = br#"{"pool":{"endpoints":[{"address":"10.0.0.1:8000"},
            {"address":"10.0.0.2:8000","labels":{"llm-d.ai/context-length-range":"8k"}}]},
            "profile":{"scorers":[{"type":"context-length-aware"}],"picker":{"type":"random-picker"}}}"#;
        let message = "pool.endpoints[1].labels: \"llm-d.ai/context-length-range\" is \"8k\", which is no range of tokens \
                       such as 0-8192";
        assert_eq!(load(json).unwrap_err().to_string(), message);
    }

    #[test]
    fn a_scorer_that_is_to_filter_does_so_behind_the_filters() {
        let filters = |scorer: &str| {
            let json = format!(
                r#"{{"pool":{{"endpoints":[{{"address":"10.0.0.1:8000"}}]}},"profile":{{"filters":[{{"type":"healthy"}}],
                "scorers":[{{"type":"context-length-aware","parameters":{scorer}}}],"picker":{{"type":"random-picker"}}}}}}"#
            );
            let profile = load(json.as_bytes()).unwrap().profile;
            profile.filters.iter().map(|(name, _)| *name).collect::<Vec<_>>()
        };
        assert_eq!(filters(r#"{"enableFiltering":true}"#), ["healthy", "context-length-aware"]);
        assert_eq!(filters("{}"), ["healthy"]);
    }

    #[test]
    fn whole_numbers_may_come_as_floats() {
        let json = br#"{"pool":{"endpoints":[{"address":"10.0.0.1:8000"}]},
            "profile":{"picker":{"type":"max-score-picker","parameters":{"maxNumOfEndpoints":3.0}}}}"#;
        assert!(load(json).is_ok());
    }
}
