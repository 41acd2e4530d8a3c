//! What reading the metrics of 100 endpoints ten times a second takes, and what of it is what.
//!
//! Envoys take turns with servers that say more or less: no scraper at all, a text of three lines, 60 KB that the picker
//! refuses at its first byte, and 60 KB that it reads. From one to the next comes what a call costs, what carrying 60 KB
//! costs, and what reading them costs.

mod report;

use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Args;
use testbed::{Bootstrap, Envoy};
use tokio::time::sleep;

use crate::cpu::CpuTime;
use crate::servers::{MetricsText, Upstream};

/// How much to measure.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Options {
    /// How often each is measured.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// For how many seconds.
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// Endpoints.
    #[arg(long, default_value_t = 100)]
    endpoints: usize,
}

/// What is scraped; `None`: nothing.
type Scraped = Option<MetricsText>;

const ALL: [Scraped; 4] = [None, Some(MetricsText::Short), Some(MetricsText::Unread), Some(MetricsText::Vllm)];

/// What a run came to.
#[derive(Clone, Copy, Debug)]
struct Sample {
    scraped: Scraped,
    /// Scrapes in a second.
    rate: f64,
    /// Cores that Envoy used: its main thread, which scrapes.
    main: f64,
    /// Its other threads, which read what was published.
    others: f64,
}

/// Measures and prints.
pub(crate) async fn run(options: &Options) -> Result<()> {
    let mut samples = Vec::new();
    for round in 1..=options.rounds {
        eprint!("\rround {round} of {}", options.rounds);
        for scraped in ALL {
            samples.push(measure(scraped, options).await?);
        }
    }
    eprintln!();
    println!("{}", report::Report { samples: &samples, endpoints: options.endpoints });
    Ok(())
}

async fn measure(scraped: Scraped, options: &Options) -> Result<Sample> {
    let metrics = scraped.unwrap_or(MetricsText::Short);
    let upstream = Upstream { servers: options.endpoints, metrics }.start()?;
    let mut bootstrap = Bootstrap::new(upstream.addresses())?;
    if scraped.is_none() {
        bootstrap = bootstrap.without_picker()?;
    }
    let envoy = Envoy::start_with(&bootstrap, 1).await?;
    // Connections are there and what is hot has been compiled.
    sleep(Duration::from_secs(2)).await;
    let calls = async || envoy.stat("cluster.endpoint_picker_scrape.upstream_rq_total").await;
    let (before, cpu, begin) = (calls().await?, CpuTime::of(envoy.pid())?, Instant::now());
    sleep(Duration::from_secs(options.seconds)).await;
    let (used, took) = (CpuTime::of(envoy.pid())? - cpu, begin.elapsed().as_secs_f64());
    let rate = calls().await?.saturating_sub(before) as f64 / took;
    Ok(Sample { scraped, rate, main: used.main.as_secs_f64() / took, others: used.others.as_secs_f64() / took })
}
