//! What a request pays for being placed.
//!
//! One Envoy with one worker has a listener for each way to take: the direct one, one through a filter that does nothing,
//! one through the picker as shipped, and one through an external processor that does as little as one can (see
//! [`crate::servers::PickerService`]). Behind all of them is the same cluster of servers that answer at once.
//!
//! Rounds are repeated, and within each the order is drawn anew. What is reported is the median over the rounds of the
//! difference to the direct way in the same round: what else the machine does in that round takes from all of them.
//!
//! The picker's scraper runs all the time. Its CPU time is measured while no request is there, taken off what Envoy uses
//! during requests, and reported by itself.

mod limits;
mod measure;
mod proxy;
mod report;

use anyhow::Result;
use clap::Args;

use crate::servers::{MetricsText, PickerService, Upstream};

use measure::Bench;
use proxy::Proxy;
use report::Report;

/// How much to measure.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// How often everything is measured.
    #[arg(long, default_value_t = 20)]
    rounds: usize,
    /// Requests of each kind, on each way, in each round.
    #[arg(long, default_value_t = 400)]
    requests: usize,
    /// Endpoints of the pool, all scraped.
    #[arg(long, default_value_t = 50)]
    endpoints: usize,
    /// A ready profile instead of the shipped one.
    #[arg(long)]
    profile: Option<String>,
    /// Two rounds of few requests: shows that it works, and no figures to quote.
    #[arg(long)]
    quick: bool,
}

/// Measures and prints.
pub(crate) async fn run(options: &Options) -> Result<()> {
    let (rounds, requests) = if options.quick { (2, 40) } else { (options.rounds, options.requests) };
    let upstream = Upstream { servers: options.endpoints, metrics: MetricsText::Vllm }.start()?;
    let service = PickerService::start(upstream.addresses())?;
    let proxy = Proxy::start(upstream.addresses(), service.addresses(), options.profile.as_deref()).await?;

    let mut bench = Bench::new(&proxy, service.pid(), requests).await?;
    bench.round().await?;
    let mut measured = Vec::new();
    for round in 1..=rounds {
        eprint!("\rround {round} of {rounds}");
        measured.push(bench.round().await?);
    }
    eprintln!();
    println!("{}", Report::new(&measured, bench.idle(), options.endpoints));
    Ok(())
}
