//! Whom to scrape.

use std::collections::BTreeMap;
use std::hash::Hash;
use std::net::SocketAddr;
use std::sync::Arc;

use xxhash_rust::xxh3::Xxh3;

use super::Discovery;
use crate::scrape::EngineSpec;
use crate::scrape::Settings;

/// An endpoint as configured or found: whom to scrape and how to read the answer.
#[derive(Clone, Debug)]
pub struct Target {
    /// Where it listens, for requests and scrapes alike.
    pub address: SocketAddr,
    /// Path of its metrics.
    pub metrics_path: String,
    /// Which metrics carry which signal.
    pub spec: Arc<EngineSpec>,
    /// It gets no new request; what it has in flight goes on.
    pub draining: bool,
    /// Labels for filters. Every worker has them from the configuration, so they are in no snapshot.
    pub labels: BTreeMap<String, String>,
}

/// The same for two configurations by which scraping is the same.
pub fn fingerprint(targets: &[Target], scrape: &Settings, discovery: Option<&Discovery>) -> u64 {
    let mut hash = Xxh3::new();
    scrape.hash(&mut hash);
    let found = discovery.map(|discovery| {
        (&discovery.cluster, &discovery.admin_cluster, discovery.interval).hash(&mut hash);
        discovery.target(SocketAddr::from(([0; 4], 0)))
    });
    let mut previous: Option<&Arc<EngineSpec>> = None;
    for Target { address, metrics_path, spec, labels, draining: _ } in targets.iter().chain(&found) {
        (address, metrics_path, labels).hash(&mut hash);
        // Mostly all endpoints share one, and it is long.
        let same = previous.is_some_and(|previous| Arc::ptr_eq(previous, spec));
        (!same).then_some(spec).hash(&mut hash);
        previous = Some(spec);
    }
    hash.digest()
}
