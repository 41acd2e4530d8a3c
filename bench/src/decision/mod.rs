//! What a decision takes where it is taken: in Envoy's own WebAssembly engine.
//!
//! A guest (`bench/decision-guest`) runs the picker's core in Envoy and nothing beside it: with the ledger and the
//! prefix index in Envoy's shared data, as in use, and in the guest's own memory, which leaves the host calls out. Each
//! prompt has 128 blocks, of which all prompts share a quarter; the rest is new, so that it has to be written down.

mod report;

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::{Value, json};
use testbed::envoy::at;
use testbed::{Bootstrap, Envoy};

use crate::body::Chat;
use crate::guest;
use crate::statistics::Middle;

/// Bytes of a chat that has 128 blocks.
const CHAT: usize = 33_400;

const ENDPOINTS: [usize; 5] = [8, 32, 100, 300, 1000];

/// What to measure.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// A ready profile.
    #[arg(long, default_value = "expected-cost")]
    profile: String,
}

/// Something that is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Case {
    endpoints: usize,
    shared: bool,
    reads: bool,
}

impl Case {
    fn all() -> impl Iterator<Item = Self> {
        let kinds = [(false, false), (true, false), (true, true)];
        ENDPOINTS.into_iter().flat_map(move |endpoints| kinds.map(|(shared, reads)| Self { endpoints, shared, reads }))
    }

    /// As the guest wants it.
    fn written(self, profile: &str) -> Value {
        let Self { endpoints, shared, reads } = self;
        let address = |at: usize| json!({ "address": format!("10.0.{}.{}:8000", at / 250, at % 250 + 1) });
        json!({
            "picker": {
                // Cases must not find what others left in shared data.
                "pool": {
                    "name": format!("{endpoints}-{reads}"),
                    "endpoints": (0..endpoints).map(address).collect::<Vec<_>>(),
                },
                "profile": profile,
            },
            "chat": Chat::new(CHAT),
            "shared": shared,
            "reads": reads,
            "in_flight": 2 * endpoints,
        })
    }
}

/// Measures and prints.
pub(crate) async fn run(options: &Options) -> Result<()> {
    let cases: Vec<_> = Case::all().collect();
    let written: Vec<_> = cases.iter().map(|case| case.written(&options.profile)).collect();
    let envoy = Envoy::start_with(&configuration(&written)?, 1).await?;
    let finished = async |envoy: &Envoy| {
        let measured = measured(&envoy.log());
        (measured.len() >= cases.len() || envoy.log().contains("no case")).then_some(measured)
    };
    let measured = envoy.until("the end of the measurement", finished).await?;
    ensure!(measured.len() == cases.len(), "{}", envoy.log());
    let micros = measured.into_iter().map(|nanos| Middle::of(nanos.into_iter().map(|nanos| nanos as f64 / 1e3)));
    let measured: Vec<_> = cases.into_iter().zip(micros).collect();
    println!("{}", report::Report(&measured));
    Ok(())
}

/// The guest in the place of the scraper, and no picker.
fn configuration(cases: &[Value]) -> Result<Bootstrap> {
    let shipped = Bootstrap::new(&[])?;
    let scraper = shipped.at("/bootstrap_extensions/0")?.clone();
    let plan = json!({
        "@type": "type.googleapis.com/google.protobuf.StringValue",
        "value": json!({ "cases": cases }).to_string(),
    });
    shipped
        .without_picker()?
        .set("/bootstrap_extensions", json!([scraper]))?
        .set(at::SCRAPER, guest::plugin(guest::DECISION)?)?
        .set(&format!("{}/configuration", at::SCRAPER), plan)
}

/// Nanoseconds of each batch, for each case that has ended.
fn measured(log: &str) -> Vec<Vec<u64>> {
    let lines = log.lines().filter_map(|line| line.split_once("decision: "));
    lines.filter_map(|(_, nanos)| serde_json::from_str(nanos).context("nanoseconds").ok()).collect()
}
