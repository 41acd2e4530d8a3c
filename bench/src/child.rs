//! Servers as processes of their own, so that the CPU time of each can be told from the others'.
//!
//! A child is this same program with another subcommand. It prints the addresses it listens on and ends when its
//! standard input does, which is when its parent has ended, however that came about.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::{env, io, process, thread};

use anyhow::{Context, Result};

/// A running child; killed when dropped.
#[derive(Debug)]
pub(crate) struct Child {
    process: process::Child,
    addresses: Vec<SocketAddr>,
}

impl Child {
    /// Starts this program with these arguments and waits until it listens.
    pub(crate) fn start(arguments: &[&str]) -> Result<Self> {
        let mut command = Command::new(env::current_exe()?);
        let mut process = command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        BufReader::new(process.stdout.take().context("no output")?).read_line(&mut line)?;
        let addresses = serde_json::from_str(&line).with_context(|| format!("{arguments:?} did not start"))?;
        Ok(Self { process, addresses })
    }

    /// Where it listens.
    pub(crate) fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The child's side: tells the parent where this process listens, and ends it with its parent.
pub(crate) fn announce(addresses: &[SocketAddr]) -> Result<()> {
    println!("{}", serde_json::to_string(addresses)?);
    thread::spawn(|| {
        let _ = io::stdin().read_to_end(&mut Vec::new());
        process::exit(0);
    });
    Ok(())
}
