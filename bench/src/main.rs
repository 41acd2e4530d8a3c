//! What the picker costs on the machine, each by one command:
//!
//! ```sh
//! ./build.sh bench                                  # all of it, and what it needs
//! cargo run --release --package bench -- tax        # a request: direct, empty filter, picker, picker service
//! cargo run --release --package bench -- decision   # a decision in Envoy's own WebAssembly engine
//! cargo run --release --package bench -- scrape     # reading the metrics of 100 endpoints ten times a second
//! ```
//!
//! What is measured, how, and what the figures do not say is in `docs/bench.md`.

mod body;
mod child;
mod cpu;
mod decision;
mod guest;
mod load;
mod scrape;
mod servers;
mod statistics;
mod table;
mod tax;

use anyhow::Result;
use clap::{Parser, Subcommand};

use servers::{PickerService, Upstream};

/// What the picker costs on the machine.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// What a request pays: direct, an empty filter, the picker, and a picker beside the proxy, in one Envoy.
    Tax(tax::Options),
    /// What a decision takes in Envoy's own WebAssembly engine.
    Decision(decision::Options),
    /// What reading the metrics of 100 endpoints ten times a second takes.
    Scrape(scrape::Options),
    /// Model servers in a process of their own.
    #[command(hide = true)]
    Upstream(Upstream),
    /// An external processor in a process of its own.
    #[command(hide = true)]
    PickerService(PickerService),
}

// One thread for the load, as one for each server and one for Envoy's worker.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    match Arguments::parse().command {
        Command::Tax(options) => tax::run(&options).await,
        Command::Decision(options) => decision::run(&options).await,
        Command::Scrape(options) => scrape::run(&options).await,
        Command::Upstream(servers) => servers.serve().await,
        Command::PickerService(service) => service.serve().await,
    }
}
