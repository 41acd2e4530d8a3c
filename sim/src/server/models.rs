//! Which model a body means.

use xxhash_rust::xxh3::xxh3_64;

use super::error::ApiError;

/// The base model's names and its adapters.
pub(super) struct Models {
    /// The first is the one answers carry when a body names none.
    pub(super) base: Vec<String>,
    pub(super) adapters: Vec<String>,
    /// Whether other names are an error or mean the base model.
    pub(super) enforce: bool,
}

/// A model a call may name.
pub(super) struct Model<'a> {
    pub(super) name: &'a str,
    /// Keeps its cache apart from the others'.
    pub(super) salt: u64,
    pub(super) adapter: Option<u32>,
}

impl Models {
    pub(super) fn first(&self) -> &str {
        self.base.first().map_or("", String::as_str)
    }

    /// The model of that name; the base model if there is no name. Error: an unknown name, if names are enforced.
    pub(super) fn resolve<'a>(&'a self, name: Option<&str>) -> Result<Model<'a>, ApiError> {
        let salt = xxh3_64(self.first().as_bytes());
        let base = |name: &'a str| Model { name, salt, adapter: None };
        let Some(name) = name else { return Ok(base(self.first())) };
        if let Some(known) = self.base.iter().find(|known| *known == name) {
            return Ok(base(known));
        }
        if let Some((adapter, known)) = (0..).zip(&self.adapters).find(|(_, known)| *known == name) {
            let salt = salt ^ xxh3_64(known.as_bytes());
            return Ok(Model { name: known, salt, adapter: Some(adapter) });
        }
        if self.enforce { Err(ApiError::unknown_model(name, &self.base.join(", "))) } else { Ok(base(self.first())) }
    }
}
