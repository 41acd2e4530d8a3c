//! The configuration: written -> checked -> resolved.
//!
//! One JSON document serves every role. What a person writes is read into `Written…` types, whose field types refuse
//! impossible values while reading and so know the place; what concerns several fields is checked when they are
//! resolved into [`Config`], where nothing is optional or textual any more. The first thing wrong is reported as a
//! [`ConfigError`] with its path. The comments on the `Written…` types are the user's reference: `docs/configuration.md`
//! is made from them and from the ranges in their field types.

mod address;
mod engine;
mod error;
mod name;
mod objective;
mod path;
mod pool;
mod prefix;
mod profile;
mod ready;
#[cfg(feature = "schema")]
pub mod reference;
mod request;
mod saturation;
mod scrape;
mod strict;
mod suggest;
#[cfg(test)]
mod tests;
mod whole;

pub use error::ConfigError;
pub use pool::Pool;
pub use prefix::Prefix;
pub use request::Request;
pub use saturation::Saturation;
use strict::{object, objects};
use suggest::choices;
use whole::Whole;

use crate::objectives::Objectives;
use crate::schedule::Profile;
pub use crate::scrape::Settings as Scrape;
use engine::Engines;
use objective::WrittenObjective;
use pool::WrittenPool;
use prefix::WrittenPrefix;
use profile::{WrittenPlugin, WrittenProfile};
use ready::named_or_written;
use request::WrittenRequest;
use scrape::WrittenScrape;
use serde::Deserialize;

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
    /// What requests are for.
    pub objectives: Objectives,
    /// How it is told that the pool is full.
    pub saturation: Saturation,
    /// Who is told of each decision.
    pub explain: Explain,
    /// The request headers that matter to where a request goes, in lower case.
    pub request_headers: Vec<Box<str>>,
}

impl Config {
    /// Whether each worker knows all requests that are sent to the servers, direct clients' apart.
    pub fn sees_all(&self) -> bool {
        self.ledger == Sharing::Shared && self.gateways == 1
    }
}

/// The configuration is one JSON object, the same for scraper and pickers. In Envoy it is the `configuration` of the
/// plugin: a `google.protobuf.StringValue` with the JSON text, or a `google.protobuf.Struct`, in which YAML can be written.
/// Only `pool.endpoints` must be given; what is left out keeps its default, also inside an object that is given in part.
/// Unknown fields, wrong types, values out of range and keys written twice are refused with the place, such as
/// `pool.endpoints[1].address`; the proxy then keeps the configuration it had, or does not start.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(title = "Endpoint picker configuration"))]
#[serde(deny_unknown_fields)]
struct Written {
    /// The model servers among which requests are spread.
    #[serde(deserialize_with = "object")]
    pool: WrittenPool,
    /// How the metrics of the servers are read.
    #[serde(default, deserialize_with = "object")]
    scrape: WrittenScrape,
    /// How request bodies are read.
    #[serde(default, deserialize_with = "object")]
    request: WrittenRequest,
    /// How prompts are cut into blocks, and how much is remembered of who holds which.
    #[serde(default, deserialize_with = "object")]
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
    /// How an endpoint is chosen: a ready profile by its name, or filters, scorers and a picker.
    #[serde(default, deserialize_with = "named_or_written")]
    #[cfg_attr(
        feature = "schema",
        schemars(with = "ready::NamedOrWritten", extend("default" = crate::schedule::ready::DEFAULT.name))
    )]
    profile: WrittenProfile,
    /// What requests are for. Without any, all are alike and none is shed.
    #[serde(default, deserialize_with = "objects")]
    objectives: Vec<WrittenObjective>,
    /// How it is told that the pool is full, by which requests whose objective has a priority below 0 are shed, and which the
    /// statistics show. `{"type": "utilization-detector"}` if left out.
    #[serde(default = "saturation::utilization", deserialize_with = "object")]
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

/// Reads, checks and resolves a configuration. The error is the first thing found wrong.
pub fn load(json: &[u8]) -> Result<Config, ConfigError> {
    let written: Written = strict::parse(json)?;
    let engines =
        Engines::resolve(&written.scrape.engines).map_err(|error| error.within("engines").within("scrape"))?;
    let scrape = written.scrape.resolve().map_err(|error| error.within("scrape"))?;
    let profile = written.profile.resolve(scrape.interval).map_err(|error| error.within("profile"))?;
    let objectives = objective::resolve(written.objectives).map_err(|error| error.within("objectives"))?;
    let headers = [profile.headers(), objectives.headers()].concat();
    Ok(Config {
        pool: written.pool.resolve(&engines).map_err(|error| error.within("pool"))?,
        request: written.request.resolve(),
        prefix: written.prefix.resolve(),
        ledger: written.ledger,
        explain: written.explain,
        gateways: written.gateways.get(),
        failure_mode: written.failure_mode,
        saturation: saturation::resolve(written.saturation, scrape.interval)?,
        scrape,
        request_headers: headers.into_iter().map(Into::into).collect(),
        objectives,
        profile,
    })
}
