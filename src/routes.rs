//! From the body of a request to the pool that serves its model.
//!
//! With one pool for all models and nothing to be told of the model, nobody asks here and no body is read twice.

mod choice;

pub use choice::{Choice, Rule};

use crate::headers::Headers;
use crate::prompt::{self, Dialect, Facts};

/// Which pool serves which model.
#[derive(Debug, Default)]
pub struct Routes {
    /// Every model and every adapter that is named somewhere, once.
    pub served: Vec<Served>,
    /// The pool of all others.
    pub default: Option<usize>,
    /// Pools in all.
    pub pools: usize,
    /// Whether the model and its base are told in request headers.
    pub tells: bool,
    /// Chooses the model for clients that leave it open.
    pub choice: Option<Choice>,
}

/// A model or an adapter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    /// As clients name it.
    pub name: Box<str>,
    /// Of an adapter, the model it was made for.
    pub base: Option<Box<str>>,
    /// The pool, by its place in the configuration.
    pub pool: usize,
}

/// Where a request goes, and as what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Route {
    /// The pool, by its place in the configuration.
    pub pool: usize,
    /// The model that it asks for; `None` if it names none that can be read, or nobody needs to know.
    pub model: Option<Box<[u8]>>,
}

/// No pool serves this model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownModel(pub Box<[u8]>);

impl Routes {
    /// The pool of requests that name no model: the one for all models that no other names, else the first.
    pub fn fallback(&self) -> usize {
        self.default.unwrap_or(0)
    }

    /// Looks for the model in a body, or in what was read of one, if it makes a difference.
    pub fn route(&self, body: &[u8]) -> Result<Route, UnknownModel> {
        let matters = self.tells || self.pools > 1 || self.default.is_none();
        let Some(model) = matters.then(|| prompt::model(body)).flatten() else {
            return Ok(Route { pool: self.fallback(), model: None });
        };
        match self.served(&model).map(|served| served.pool).or(self.default) {
            Some(pool) => Ok(Route { pool, model: Some(model) }),
            None => Err(UnknownModel(model)),
        }
    }

    /// The model for a request that leaves it open by asking for `model`; `None` if it does not.
    pub fn choose(
        &self,
        model: &[u8],
        dialect: Dialect,
        body: &[u8],
        declared_len: Option<u64>,
        headers: &Headers,
    ) -> Option<&str> {
        let choice = self.choice.as_ref().filter(|choice| choice.applies_to(model))?;
        Some(choice.choose(&Facts::of(dialect, body, declared_len), headers))
    }

    /// Whether there is a pool for this model.
    pub fn serve(&self, model: &str) -> bool {
        self.default.is_some() || self.served(model.as_bytes()).is_some()
    }

    /// The base model of an adapter; what is not known as an adapter is its own.
    pub fn base<'a>(&'a self, model: &'a [u8]) -> &'a [u8] {
        self.served(model).and_then(|served| served.base.as_deref()).map_or(model, str::as_bytes)
    }

    /// Where a name is served, if it is named anywhere.
    pub fn served(&self, name: &[u8]) -> Option<&Served> {
        self.served.iter().find(|served| served.name.as_bytes() == name)
    }
}
