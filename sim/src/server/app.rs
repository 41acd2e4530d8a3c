//! What the handlers of a server share.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::watch;

use super::Phase;
use super::faults::Faults;
use super::live::LiveEngine;
use super::models::Models;
use crate::metrics::Flavor;

/// State of a server.
pub(super) struct App {
    pub(super) addr: SocketAddr,
    pub(super) flavor: Flavor,
    pub(super) engine: LiveEngine,
    pub(super) config: crate::engine::Config,
    pub(super) models: Models,
    pub(super) faults: Faults,
    pub(super) context_len: u32,
    pub(super) block_size: u32,
    pub(super) default_max_tokens: u32,
    /// Unix seconds.
    pub(super) started: f64,
    pub(super) phase: watch::Receiver<Phase>,
    pub(super) ids: AtomicU64,
}

impl App {
    /// A number no other answer of this server has; differs between servers.
    pub(super) fn next_id(&self) -> u64 {
        let count = self.ids.fetch_add(1, Ordering::Relaxed);
        (u64::from(self.addr.port()) << 48) | count
    }

    /// Returns when the server is told to stop.
    pub(super) async fn stopping(&self) {
        let _ = self.phase.clone().wait_for(|phase| *phase != Phase::Serving).await;
    }
}
