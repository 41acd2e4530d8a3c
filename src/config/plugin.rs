//! A plugin as written: its name and its parameters.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{ConfigError, choices};
use crate::schedule::registry::Plugin;

/// A filter, a picker, a decider or a detector.
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

impl WrittenPlugin {
    /// Looks it up in `table` and builds it from its parameters.
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
        let built = plugin.build(Value::Object(parameters)).map_err(|error| error.within("parameters").within(path))?;
        Ok((plugin.name, built))
    }
}
