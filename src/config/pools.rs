//! Several pools in one document, and which of them serves what.

use super::ConfigError;
use super::engine::Engines;
use super::model::ModelName;
use super::name::Name;
use super::pool::{Pool, WrittenPool};
use super::profile::WrittenProfile;

use crate::routes::{Routes, Served};
use crate::strict::SMALLEST;
use hashbrown::HashMap;

/// A pool, and how its endpoints are chosen if otherwise than for all.
pub(super) struct Resolved {
    pub(super) place: String,
    pub(super) pool: Pool,
    pub(super) profile: Option<WrittenProfile>,
}

/// Resolves the pools, of which one or several were written, and the table of who serves what.
pub(super) fn resolve(
    one: Option<WrittenPool>,
    several: Vec<WrittenPool>,
    engines: &Engines,
) -> Result<(Vec<Resolved>, Routes), ConfigError> {
    let written: Vec<_> = match (one, several.is_empty()) {
        (Some(pool), true) => vec![("pool".to_owned(), pool)],
        (None, false) => several.into_iter().enumerate().map(|(i, pool)| (format!("pools[{i}]"), pool)).collect(),
        (Some(_), false) => return Err(ConfigError::at("pools", "either `pool` or `pools` can be given, not both")),
        (None, true) => {
            return Err(ConfigError::at(
                "",
                format!("`pool` is missing, or `pools` with at least one; the least is {SMALLEST}"),
            ));
        }
    };
    let mut routes = Routes { pools: written.len(), ..Routes::default() };
    // Where each name of `routes.served` was written.
    let mut places = Vec::new();
    let mut addresses = HashMap::new();
    let mut resolved: Vec<Resolved> = Vec::with_capacity(written.len());
    for (at, (place, mut pool)) in written.into_iter().enumerate() {
        let Name(name) = &pool.name;
        if let Some(other) = resolved.iter().find(|other| other.pool.name == *name) {
            let message = format!("{} is named {name} already; choose another name", other.place);
            return Err(ConfigError::at("name", message).within(&place));
        }
        let names = Names { pool: at, place: &place, routes: &mut routes, places: &mut places, resolved: &resolved };
        names.add(&mut pool)?;
        let profile = pool.profile.take();
        let pool = pool.resolve(&place, engines, &mut addresses).map_err(|error| error.within(&place))?;
        let finds = |other: &Pool| other.discovery.as_ref().map(|discovery| discovery.cluster.clone());
        if let Some(other) =
            resolved.iter().find(|other| pool.discovery.is_some() && finds(&other.pool) == finds(&pool))
        {
            let message = format!("{} finds its members there already", other.place);
            return Err(ConfigError::at("discovery.cluster", message).within(&place));
        }
        resolved.push(Resolved { place, pool, profile });
    }
    Ok((resolved, routes))
}

/// Takes up the names of one pool.
struct Names<'a> {
    pool: usize,
    place: &'a str,
    routes: &'a mut Routes,
    places: &'a mut Vec<String>,
    resolved: &'a [Resolved],
}

impl Names<'_> {
    fn add(mut self, pool: &mut WrittenPool) -> Result<(), ConfigError> {
        let all = pool.models.is_none();
        if all {
            if let Some(other) = self.routes.default.and_then(|other| self.resolved.get(other)) {
                let message =
                    format!("missing; only one pool can take all models that no other names, and {} does", other.place);
                return Err(ConfigError::at("models", message).within(self.place));
            }
            self.routes.default = Some(self.pool);
        }
        let models = pool.models.take().unwrap_or_default();
        if models.is_empty() && !all {
            return Err(ConfigError::at("models", "at least one model is needed").within(self.place));
        }
        let first = self.routes.served.len();
        for (i, ModelName(name)) in models.into_iter().enumerate() {
            self.name(format!("{}.models[{i}]", self.place), name, None)?;
        }
        for (name, base) in std::mem::take(&mut pool.adapters) {
            let place = format!("{}.adapters.{name}", self.place);
            let check = |text| ModelName::try_from(text).map_err(|fault| ConfigError::at(&place, fault));
            let (ModelName(name), ModelName(base)) = (check(name)?, check(base)?);
            let own = self.routes.served.get(first..).unwrap_or_default();
            if !all && !own.iter().any(|served| *served.name == *base && served.base.is_none()) {
                return Err(ConfigError::at(place, format!("its base model {base:?} is not among `models`")));
            }
            self.name(place, name, Some(base.into()))?;
        }
        Ok(())
    }

    fn name(&mut self, place: String, name: String, base: Option<Box<str>>) -> Result<(), ConfigError> {
        let taken = self.routes.served.iter().position(|served| *served.name == *name);
        if let Some(other) = taken.and_then(|taken| self.places.get(taken)) {
            return Err(ConfigError::at(place, format!("{name:?} is {other} already")));
        }
        self.places.push(place);
        self.routes.served.push(Served { name: name.into(), base, pool: self.pool });
        Ok(())
    }
}
