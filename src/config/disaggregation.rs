//! Prefill apart from decode.

use std::time::Duration;

use serde::Deserialize;

use super::plugin::WrittenPlugin;
use super::profile::WrittenProfile;
use super::ready::named_or_written;
use super::{ConfigError, Pool};
use crate::schedule::registry::DECIDERS;
use crate::schedule::{Decider, Profile, roles};

/// How prompts are read elsewhere than where their answers are generated.
#[derive(Debug)]
pub struct Disaggregation {
    /// Chooses who reads a prompt.
    pub profile: Profile,
    /// Says for which prompts.
    pub decider: Box<dyn Decider>,
}

/// One server reads the prompt, another one generates the answer. The label `llm-d.ai/role` of an endpoint says what it
/// does: `decode` generates, `prefill` reads, `prefill-decode` or `both` does either, one without the label generates. First
/// the profile of the pool chooses among those that generate, as if each of them read its prompts itself; then the
/// decider looks at the one chosen; then the profile `prefill` chooses among the others that read. The opposite order,
/// prefill first, is not offered. The request goes to the server that generates, and the header `x-prefiller-host-port` names
/// the other one. If there is none, or the decider is against it, the header is missing and one server does both; a header
/// of this name from a client is always removed.
///
/// The body goes on as it came: a routing sidecar before the engine that generates, such as that of llm-d, has the prompt read
/// at the server named, with one output token, and hands the KV transfer parameters that come back on to its engine. Without
/// such a sidecar the header has no effect, and what this proxy believes to be in flight is wrong.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenDisaggregation {
    /// How the server that reads is chosen, like `profile`: a ready profile by its name, or filters, scorers and a picker. For
    /// this choice the answer has no tokens. Only the first that the picker names counts.
    #[serde(default, deserialize_with = "named_or_written")]
    #[cfg_attr(
        feature = "schema",
        schemars(with = "super::ready::NamedOrWritten", extend("default" = crate::schedule::ready::DEFAULT.name))
    )]
    prefill: WrittenProfile,
    /// Which prompts are worth it; see the list of deciders below.
    decider: WrittenPlugin,
}

impl WrittenDisaggregation {
    /// Signals are read once in `interval`.
    pub(super) fn resolve(self, interval: Duration) -> Result<Disaggregation, ConfigError> {
        let profile = self.prefill.resolve(interval).map_err(|error| error.within("prefill"))?;
        let (_, decider) = self.decider.build(DECIDERS, "decider")?;
        Ok(Disaggregation { profile, decider })
    }
}

impl Disaggregation {
    /// Refuses what cannot be meant together with `pool`, which was written at `place`.
    pub(super) fn check(&self, pool: &Pool, place: &str) -> Result<(), ConfigError> {
        if self.profile.sessions().next().is_some() {
            let message = "sessions are kept where answers are generated; their plugins belong into `profile`";
            return Err(ConfigError::at("disaggregation.prefill", message));
        }
        if pool.discovery.is_none() && !pool.endpoints.iter().any(|endpoint| roles::decodes(&endpoint.labels)) {
            let message = "with `disaggregation`, one endpoint at least must generate: by its label llm-d.ai/role, or without one";
            return Err(ConfigError::at(format!("{place}.endpoints"), message));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Config, ConfigError, load};

    fn with(disaggregation: &str) -> Result<Config, ConfigError> {
        let pool = r#""pool":{"endpoints":[{"address":"10.0.0.1:8000"}]}"#;
        load(format!(r#"{{{pool},"disaggregation":{disaggregation}}}"#).as_bytes())
    }

    #[track_caller]
    fn refused(disaggregation: &str, message: &str) {
        assert_eq!(with(disaggregation).unwrap_err().to_string(), message);
    }

    #[test]
    fn a_pool_in_which_nobody_generates_is_refused() {
        let pool = r#""pool":{"endpoints":[{"address":"10.0.0.1:8000","labels":{"llm-d.ai/role":"prefill"}}]}"#;
        let json = format!(r#"{{{pool},"disaggregation":{{"decider":{{"type":"always-disagg-pd-decider"}}}}}}"#);
        let error = load(json.as_bytes()).unwrap_err().to_string();
        assert!(
            error.starts_with("pool.endpoints: with `disaggregation`, one endpoint at least must generate"),
            "{error}"
        );
    }

    #[test]
    fn a_session_that_only_the_reader_would_keep_is_refused() {
        refused(
            r#"{"decider":{"type":"always-disagg-pd-decider"},"prefill":{
                "scorers":[{"type":"session-affinity-scorer"}],"picker":{"type":"random-picker"}}}"#,
            "disaggregation.prefill: sessions are kept where answers are generated; their plugins belong into `profile`",
        );
    }

    #[test]
    fn both_deciders_and_both_kinds_of_profile_are_taken() {
        let prefix = r#"{"type":"prefix-based-pd-decider","parameters":{"nonCachedTokens":512.0,"promptTokens":1024}}"#;
        assert!(with(&format!(r#"{{"decider":{prefix}}}"#)).is_ok());
        assert!(with(r#"{"prefill":"least-request","decider":{"type":"always-disagg-pd-decider"}}"#).is_ok());
        let written = r#"{"scorers":[{"type":"token-load-scorer"}],"picker":{"type":"max-score-picker"}}"#;
        assert!(with(&format!(r#"{{"prefill":{written},"decider":{prefix}}}"#)).is_ok());
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_place() {
        refused("{}", "disaggregation: missing field `decider`");
        refused("[]", "disaggregation: invalid type: list, expected an object");
        refused(
            r#"{"decider":{"type":"prefix-based-decider"}}"#,
            "disaggregation.decider.type: unknown plugin \"prefix-based-decider\"; did you mean \
             `prefix-based-pd-decider`? Known here: `prefix-based-pd-decider`, `always-disagg-pd-decider`",
        );
        refused(
            r#"{"decider":{"type":"prefix-based-pd-decider","parameters":{"nonCachedTokens":-1}}}"#,
            "disaggregation.decider.parameters.nonCachedTokens: -1 is not a whole number of at least 0",
        );
        refused(
            r#"{"decider":{"type":"always-disagg-pd-decider","parameters":{"nonCachedTokens":1}}}"#,
            "disaggregation.decider.parameters.nonCachedTokens: unknown field; no field is known here",
        );
        refused(
            r#"{"prefill":{"picker":{"type":"random"}},"decider":{"type":"always-disagg-pd-decider"}}"#,
            "disaggregation.prefill.picker.type: unknown plugin \"random\"; known here: `max-score-picker`, \
             `weighted-random-picker`, `random-picker`, `round-robin-picker`",
        );
    }
}
