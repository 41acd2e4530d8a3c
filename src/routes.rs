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
    /// The model that it goes to; `None` if it names none that can be read.
    pub model: Option<Box<[u8]>>,
    /// Whether the model was chosen here, so that the body names another.
    pub chosen: bool,
}

/// No pool serves this model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownModel(pub Box<[u8]>);

impl Routes {
    /// Whether a request's body has to be looked at to know its pool.
    pub fn ask_body(&self) -> bool {
        self.tells || self.choice.is_some() || self.pools > 1 || self.default.is_none()
    }

    /// The pool of requests that name no model: the one for all models that no other names, else the first.
    pub fn fallback(&self) -> usize {
        self.default.unwrap_or(0)
    }

    /// Looks at a body, or at what was read of one.
    pub fn route(
        &self,
        dialect: Dialect,
        body: &[u8],
        declared_len: Option<u64>,
        headers: &Headers,
    ) -> Result<Route, UnknownModel> {
        let Some(named) = prompt::model(body) else { return Ok(Route { pool: self.fallback(), ..Route::default() }) };
        let choice = self.choice.as_ref().filter(|choice| choice.applies_to(&named));
        let chosen = choice.map(|choice| choice.choose(&Facts::of(dialect, body, declared_len), headers));
        let model = chosen.map_or(named, Into::into);
        match self.served(&model).map(|served| served.pool).or(self.default) {
            Some(pool) => Ok(Route { pool, model: Some(model), chosen: chosen.is_some() }),
            None => Err(UnknownModel(model)),
        }
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
