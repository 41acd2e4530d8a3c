//! Simulated model servers that stop and come back.

use std::net::SocketAddr;

use anyhow::{Context, Result};
use sim::server::{Faults, Server, ServerConfig, ServerStats};

/// Some simulated servers of one kind in this process. Dropping it kills them.
pub struct Fleet {
    config: ServerConfig,
    addresses: Vec<SocketAddr>,
    servers: Vec<Option<Server>>,
}

impl Fleet {
    /// Starts `size` servers on ports that the system chooses.
    pub async fn start(size: usize, config: ServerConfig) -> Result<Self> {
        let mut fleet = Self { config, addresses: Vec::new(), servers: Vec::new() };
        for _ in 0..size {
            let server = Server::start(fleet.config.clone()).await?;
            fleet.addresses.push(server.addr());
            fleet.servers.push(Some(server));
        }
        Ok(fleet)
    }

    /// Every server's address, running or not.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Every server's counters; `None` while it does not run.
    pub fn stats(&self) -> Vec<Option<ServerStats>> {
        self.servers.iter().map(|server| server.as_ref().map(Server::stats)).collect()
    }

    /// Empties all caches and zeroes all counters.
    pub fn reset(&self) {
        self.servers.iter().flatten().for_each(Server::reset);
    }

    /// The faults of the running server at this place.
    pub fn faults(&self, at: usize) -> Result<Faults> {
        Ok(self.servers.get(at).and_then(Option::as_ref).context("it does not run")?.faults())
    }

    /// Lets a server finish its answers and end.
    pub async fn stop(&mut self, at: usize) -> Result<()> {
        self.take(at)?.stop().await;
        Ok(())
    }

    /// Ends a server and resets its connections.
    pub async fn kill(&mut self, at: usize) -> Result<()> {
        self.take(at)?.kill().await;
        Ok(())
    }

    /// Starts a server again where it was, with a cold cache.
    pub async fn restart(&mut self, at: usize) -> Result<()> {
        let listen = *self.addresses.get(at).context("no such server")?;
        let server = Server::start(ServerConfig { listen, ..self.config.clone() }).await?;
        *self.servers.get_mut(at).context("no such server")? = Some(server);
        Ok(())
    }

    fn take(&mut self, at: usize) -> Result<Server> {
        self.servers.get_mut(at).and_then(Option::take).context("it does not run")
    }
}
