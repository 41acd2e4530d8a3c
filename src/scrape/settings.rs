//! How scraping is done, whatever the engine.

use std::time::Duration;

/// How the servers' metrics are read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Settings {
    /// Between two scrapes of one endpoint, 20 ms to 60 s.
    pub interval: Duration,
    /// A signal older than this is not believed, and a server silent for so long is unhealthy; at least twice the interval.
    pub stale_after: Duration,
    /// Scrapes refused or answered with a server error in a row after which an endpoint is unhealthy, at least 1.
    pub unhealthy_after: u32,
    /// The proxy's cluster through which scrapes go, not empty.
    pub cluster: String,
    /// Bytes of a metrics text beyond which it is not read.
    pub max_text_bytes: usize,
}
