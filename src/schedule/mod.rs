//! To come.

use crate::config::ConfigError;

/// How an endpoint is chosen, as written.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, expecting = "an object")]
pub struct WrittenProfile {}

/// How an endpoint is chosen.
#[derive(Clone, Debug, Default)]
pub struct Profile {}

impl WrittenProfile {
    /// What the written profile means. Paths of errors begin at the profile (`scorers[2].weight`).
    pub fn resolve(&self) -> Result<Profile, ConfigError> {
        Ok(Profile {})
    }
}
