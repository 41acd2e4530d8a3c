//! The configuration: written -> checked -> resolved.
//!
//! One JSON document serves every role. What a person writes is read into `Written…` types, whose field types refuse
//! impossible values while reading and so know the place; what concerns several fields is checked when they are
//! resolved into [`Config`], where nothing is optional or textual any more. The first thing wrong is reported as a
//! [`ConfigError`] with its path. The comments on the `Written…` types are the user's reference: `docs/configuration.md`
//! is made from them and from the ranges in their field types.

mod address;
mod choice;
mod disaggregation;
mod discovery;
mod engine;
mod header;
mod model;
mod name;
mod objective;
mod path;
mod plugin;
mod pool;
mod pools;
mod prefix;
mod profile;
mod ready;
#[cfg(feature = "schema")]
pub mod reference;
mod request;
mod rewrite;
mod saturation;
mod scrape;
mod session;
#[cfg(test)]
mod tests;
mod whole;

pub use disaggregation::Disaggregation;
pub use pool::Pool;
pub use prefix::Prefix;
pub use request::Request;
pub use saturation::Saturation;
use whole::Whole;

use crate::objectives::Objectives;
use crate::prompt::Dialect;
use crate::rewrite::Rules;
use crate::routes::{Choice, Routes};
use crate::schedule::Profile;
pub use crate::scrape::Settings as Scrape;
use crate::session::Session;
pub use crate::strict::ConfigError;
use crate::strict::{self, choices};
use choice::WrittenChoice;
use disaggregation::WrittenDisaggregation;
use engine::Engines;
use header::HeaderName;
use objective::WrittenObjective;
use path::HttpPath;
use plugin::WrittenPlugin;
use pool::WrittenPool;
use pools::Resolved;
use prefix::WrittenPrefix;
use profile::WrittenProfile;
use ready::named_or_written;
use request::WrittenRequest;
use rewrite::WrittenRewrite;
use scrape::WrittenScrape;
use serde::Deserialize;

/// The header whose value decides between the targets of a rewrite.
pub const REQUEST_ID: &str = "x-request-id";

/// A whole document, checked and complete.
#[derive(Debug)]
pub struct Pools {
    /// One for each pool, in the order written; at least one.
    pub configs: Vec<Config>,
    /// Which of them a request goes to.
    pub routes: Routes,
}

/// The configuration of one pool, checked and complete.
#[derive(Debug)]
pub struct Config {
    /// The model servers.
    pub pool: Pool,
    /// How their metrics are read.
    pub scrape: Scrape,
    /// How request bodies are read.
    pub request: Request,
    /// How prompts are cut and remembered.
    pub prefix: Prefix,
    /// Who knows what is in flight where and who holds which prefix.
    pub ledger: Sharing,
    /// How many gateways route to the same servers, 1 to 1000.
    pub gateways: u32,
    /// What happens when no endpoint can be picked.
    pub failure_mode: FailureMode,
    /// How an endpoint is chosen.
    pub profile: Profile,
    /// How prompts are read elsewhere than where their answers are generated; `None`: they are not.
    pub disaggregation: Option<Disaggregation>,
    /// How sessions are told, if the profile looks at them.
    pub session: Option<Session>,
    /// What requests are for.
    pub objectives: Objectives,
    /// How it is told that the pool is full.
    pub saturation: Saturation,
    /// Who is told of each decision.
    pub explain: Explain,
    /// Which models are replaced by which.
    pub model_rewrites: Rules,
    /// Whether the proxy's wish for a subset is asked for.
    pub subset_hint: SubsetHint,
    /// The header of an answer that names who gave it, in lower case.
    pub served_header: Option<Box<str>>,
    /// The path of requests that ask whether the filter is ready.
    pub health_path: Option<Box<str>>,
    /// The request headers that matter to where a request goes, in lower case; the same for all pools of a document.
    pub request_headers: Vec<Box<str>>,
}

impl Config {
    /// Whether each worker knows all requests that are sent to the servers, direct clients' apart.
    pub fn sees_all(&self) -> bool {
        self.ledger == Sharing::Shared && self.gateways == 1
    }

    /// How many endpoints are to be remembered in the order of the last cold prompt that came to them.
    pub fn cold_memory(&self) -> u32 {
        let prefill = self.disaggregation.as_ref().map(|split| split.profile.cold_memory());
        self.profile.cold_memory().max(prefill.unwrap_or(0))
    }
}

/// The configuration is one JSON object, the same for scraper and pickers. In Envoy it is the `configuration` of the
/// plugin: a `google.protobuf.StringValue` with the JSON text, or a `google.protobuf.Struct`, in which YAML can be written.
/// Only the `endpoints` of `pool`, or of each of `pools`, or where to find them (`discovery`), must be given; what is left out
/// keeps its default, also inside an object that is given in part. Unknown fields, wrong types, values out of range and keys
/// written twice are refused with the place, such as `pool.endpoints[1].address`; the proxy then keeps the configuration it
/// had, or does not start.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(title = "Endpoint picker configuration"))]
#[serde(deny_unknown_fields)]
struct Written {
    /// The model servers among which requests are spread. Either this or `pools` must be given.
    pool: Option<WrittenPool>,
    /// Several pools, in place of `pool`. The model that a request asks for, after `model_choice` and `model_rewrites`, says
    /// which of them it goes to; one that asks for none, or has no body that can be read, goes to the pool without `models`,
    /// or else to the first. Each pool has its own name, its own servers and its own picture of them; the other settings are
    /// the same for all.
    #[serde(default)]
    pools: Vec<WrittenPool>,
    /// Whether the model of a request is told in the request header `x-gateway-model-name`, and in
    /// `x-gateway-base-model-name` the model that it was made for if it is one of `pool.adapters`, else the model itself.
    /// The routes of the proxy can go by them, which are looked up once more when the headers are set. What a client sends
    /// under these names is removed. Where no model can be read, or one with control characters, there are no headers.
    #[serde(default)]
    model_headers: bool,
    /// Chooses the model for requests that leave it open.
    model_choice: Option<WrittenChoice>,
    /// How the metrics of the servers are read.
    #[serde(default)]
    scrape: WrittenScrape,
    /// How request bodies are read.
    #[serde(default)]
    request: WrittenRequest,
    /// How prompts are cut into blocks, and how much is remembered of who holds which.
    #[serde(default)]
    prefix: WrittenPrefix,
    /// Whether the workers of the proxy know of each other what they sent where.
    #[serde(default)]
    ledger: Sharing,
    /// How many gateways route to the same servers without knowing of each other, this one included. With more than one
    /// they agree by hash on where a prompt is probably cached, and do not learn how fast servers are. All need the same
    /// `prefix.block_tokens`.
    #[serde(default = "one")]
    gateways: Whole<1, 1000>,
    /// What happens to a request when no endpoint can be picked for it: nothing is known of the servers yet, or the filters
    /// left none over.
    #[serde(default)]
    failure_mode: FailureMode,
    /// Whether each answer tells why its server was chosen. The same text is in the proxy's log at level `debug`.
    #[serde(default)]
    explain: Explain,
    /// Which models are replaced by which, for a canary, an alias or a move: the name is changed in the body of the request
    /// before an endpoint is picked, and put back where the answer names the model. The rule for the model's name is taken,
    /// or else the one without a name. The same `x-request-id` always gives the same target. The server gets the target in
    /// the header `x-llm-d-model-name-rewrite` too. A target that no server knows is answered as the server answers it, with
    /// 404 and the target in its message.
    #[serde(default)]
    model_rewrites: Vec<WrittenRewrite>,
    /// Whether the proxy may limit a request to some of the endpoints, in the dynamic metadata
    /// `envoy.lb.subset_hint` / `x-gateway-destination-endpoint-subset`; see docs/protocol.md.
    #[serde(default)]
    subset_hint: SubsetHint,
    /// The name of a header in which each answer tells the address of the server that gave it, such as
    /// `x-gateway-destination-endpoint-served`. It begins with `x-`. Left out: no header.
    served_header: Option<HeaderName>,
    /// The path at which the filter itself answers whether it is ready, such as `/-/endpoint-picker/healthz`: to GET and HEAD
    /// with 200 if any server was heard of within `scrape.stale_after`, else with 503. Left out: requests for every path go to
    /// the servers.
    health_path: Option<HttpPath>,
    /// How an endpoint is chosen: a ready profile by its name, or filters, scorers and a picker.
    #[serde(default, deserialize_with = "named_or_written")]
    #[cfg_attr(
        feature = "schema",
        schemars(with = "ready::NamedOrWritten", extend("default" = crate::schedule::ready::DEFAULT.name))
    )]
    profile: WrittenProfile,
    /// If one server shall read the prompt and another one generate the answer (prefill/decode disaggregation). Left out,
    /// each server does both.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "WrittenDisaggregation"))]
    disaggregation: Option<WrittenDisaggregation>,
    /// What requests are for. Without any, all are alike and none is shed.
    #[serde(default)]
    objectives: Vec<WrittenObjective>,
    /// How it is told that the pool is full, by which requests whose objective has a priority below 0 are shed, and which the
    /// statistics show; see the list of detectors below. `{"type": "utilization-detector"}` if left out.
    #[serde(default = "saturation::utilization")]
    saturation: WrittenPlugin,
}

/// Whether the workers of a proxy keep one book or one each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "kebab-case")]
pub enum Sharing {
    /// All workers see at once what each of them sent where.
    #[default]
    Shared,
    /// Each worker knows its own requests only, and agrees with the others by hash on where a prompt is probably cached.
    /// With several workers this is worse; it is for hosts whose workers cannot share, and to compare.
    Private,
}

/// Who is told of each decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "kebab-case")]
pub enum Explain {
    /// Nobody.
    #[default]
    Off,
    /// The client, in the header `x-endpoint-picker-decision` of the answer: the server chosen with its scores and the
    /// seconds they stand for, then the next best with its own. It names servers and their load: not for the public.
    Header,
}

/// Whether the proxy may limit a request to some of the endpoints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "kebab-case")]
pub enum SubsetHint {
    /// One of those named in the metadata is picked, or the request is answered with 503, whatever `failure_mode` says.
    #[default]
    Honour,
    /// The metadata is not looked at, which saves a call to the proxy for each request.
    Ignore,
}

/// What happens to a request for which no endpoint can be picked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "kebab-case")]
pub enum FailureMode {
    /// The proxy's own load balancing chooses.
    FailOpen,
    /// The request is answered with 503.
    #[default]
    FailClose,
}

fn one() -> Whole<1, 1000> {
    Whole::of(1)
}

/// Reads, checks and resolves the configuration of a single pool. The error is the first thing found wrong.
pub fn load(json: &[u8]) -> Result<Config, ConfigError> {
    let mut configs = load_pools(json)?.configs;
    match (configs.pop(), configs.is_empty()) {
        (Some(config), true) => Ok(config),
        _ => Err(ConfigError::at("pools", "a single pool is needed here")),
    }
}

/// Reads, checks and resolves a configuration. The error is the first thing found wrong.
pub fn load_pools(json: &[u8]) -> Result<Pools, ConfigError> {
    let mut document = strict::parse(json)?;
    let written: Written = strict::from(document.clone())?;
    let engines =
        Engines::resolve(&written.scrape.engines).map_err(|error| error.within("engines").within("scrape"))?;
    if written.health_path.as_ref().is_some_and(|HttpPath(path)| Dialect::of_path(path.as_bytes()).is_some()) {
        return Err(ConfigError::at("health_path", "inference requests have this path; choose another one"));
    }
    let (pools, mut routes) = pools::resolve(written.pool, written.pools, &engines)?;
    routes.tells = written.model_headers;
    let rewrites = rewrite::resolve(written.model_rewrites)?;
    rewrite::check(&rewrites, &routes)?;
    let choice = written.model_choice.map(|choice| choice.resolve(&routes, &rewrites));
    routes.choice = choice.transpose().map_err(|error| error.within("model_choice"))?;
    // What is the same for all is read again for each pool, which so has everything of its own.
    if let Some(fields) = document.as_object_mut() {
        fields.retain(|field, _| !matches!(field.as_str(), "pool" | "pools"));
    }
    let configs = pools.into_iter().map(|pool| strict::from::<Written>(document.clone())?.resolve(pool));
    let mut configs = configs.collect::<Result<Vec<_>, _>>()?;
    if configs.len() > 1 {
        for Config { session, request_headers, pool, .. } in &mut configs {
            let Some(session) = session else { continue };
            session.of_pool(&pool.name);
            request_headers.push(session.header().into());
        }
    }
    // They are read before it is known which pool a request goes to.
    let of_choice = routes.choice.iter().flat_map(Choice::headers);
    let headers =
        unique(of_choice.chain(configs.iter().flat_map(|config| &config.request_headers)).map(|name| &**name));
    configs.iter_mut().for_each(|config| config.request_headers.clone_from(&headers));
    Ok(Pools { configs, routes })
}

impl Written {
    /// Everything but the pools.
    fn resolve(self, pool: Resolved) -> Result<Config, ConfigError> {
        let Resolved { place, pool, profile } = pool;
        let scrape = self.scrape.resolve().map_err(|error| error.within("scrape"))?;
        let profile = match profile {
            Some(own) => own.resolve(scrape.interval).map_err(|error| error.within("profile").within(&place))?,
            None => self.profile.resolve(scrape.interval).map_err(|error| error.within("profile"))?,
        };
        let disaggregation = self.disaggregation.map(|split| split.resolve(scrape.interval)).transpose();
        let disaggregation = disaggregation.map_err(|error| error.within("disaggregation"))?;
        let fault = |labels| {
            let mut profiles = std::iter::once(&profile).chain(disaggregation.iter().map(|split| &split.profile));
            profiles.find_map(|profile| profile.label_fault(labels))
        };
        for (i, endpoint) in pool.endpoints.iter().enumerate() {
            if let Some(fault) = fault(&endpoint.labels) {
                return Err(ConfigError::at(format!("{place}.endpoints[{i}].labels"), fault));
            }
        }
        if let Some(fault) = pool.discovery.as_ref().and_then(|discovery| fault(&discovery.labels)) {
            return Err(ConfigError::at(format!("{place}.discovery.labels"), fault));
        }
        if let Some(split) = &disaggregation {
            split.check(&pool, &place)?;
        }
        let model_rewrites = rewrite::resolve(self.model_rewrites)?;
        let objectives = objective::resolve(self.objectives).map_err(|error| error.within("objectives"))?;
        let prefill_headers = disaggregation.iter().flat_map(|split| split.profile.headers());
        let draws = (!model_rewrites.is_empty()).then_some(REQUEST_ID);
        let request_headers = unique(profile.headers().chain(prefill_headers).chain(draws).chain(objectives.headers()));
        Ok(Config {
            pool,
            saturation: saturation::resolve(self.saturation, scrape.interval)?,
            scrape,
            request: self.request.resolve(),
            prefix: self.prefix.resolve(),
            ledger: self.ledger,
            explain: self.explain,
            subset_hint: self.subset_hint,
            served_header: self.served_header.map(|HeaderName(name)| name.into()),
            health_path: self.health_path.map(|HttpPath(path)| path.into()),
            gateways: self.gateways.get(),
            failure_mode: self.failure_mode,
            model_rewrites,
            request_headers,
            objectives,
            session: session::session(&profile)?,
            profile,
            disaggregation,
        })
    }
}

/// Each name once.
fn unique<'a>(names: impl Iterator<Item = &'a str>) -> Vec<Box<str>> {
    let mut unique: Vec<Box<str>> = Vec::new();
    for name in names {
        if !unique.iter().any(|known| **known == *name) {
            unique.push(name.into());
        }
    }
    unique
}
