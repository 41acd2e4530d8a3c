//! The command line.

mod replay;
mod serve;

use std::error::Error;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(version, about = "Simulated model servers, and replays of traces over a fleet of them")]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve one simulated engine over HTTP until interrupted.
    Serve(serve::Serve),
    /// Replay a trace over a simulated fleet and compare routing rules, in virtual time.
    Replay(replay::Replay),
}

impl Cli {
    pub(crate) fn run(self) -> Result<(), Box<dyn Error>> {
        match self.command {
            Command::Serve(serve) => serve.run(),
            Command::Replay(replay) => replay.run(),
        }
    }
}
