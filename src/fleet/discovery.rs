//! How the members of a pool are found.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use xxhash_rust::xxh3::xxh3_64;

use super::clusters::{self, Fault, Listing};
use super::{Answer, Target};
use crate::clock::Timestamp;
use crate::scrape::EngineSpec;

/// An answer that takes longer is no use any more.
const LEAST_TIMEOUT: Duration = Duration::from_secs(1);

/// Where the list of members comes from, and what is assumed of each.
#[derive(Clone, Debug)]
pub struct Discovery {
    /// The proxy's cluster whose members are the pool, not empty.
    pub cluster: String,
    /// The proxy's cluster that leads to its admin interface, not empty.
    pub admin_cluster: String,
    /// Between two questions, at least 1 s.
    pub interval: Duration,
    /// Path of the members' metrics.
    pub metrics_path: String,
    /// Which metrics carry which signal.
    pub spec: Arc<EngineSpec>,
    /// Labels of each member.
    pub labels: BTreeMap<String, String>,
}

impl Discovery {
    /// The path, with query, to ask the admin interface for.
    pub fn path(&self) -> String {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        let mut path = "/clusters?format=json".to_owned();
        // The filter is a regular expression that only shortens the answer; other names do without. The answer is searched
        // for the exact name.
        if self.cluster.bytes().all(plain) {
            path = path + "&filter=%5E" + &self.cluster + "%24";
        }
        path
    }

    /// How long an answer is waited for: an interval.
    pub fn timeout(&self) -> Duration {
        self.interval.max(LEAST_TIMEOUT)
    }

    pub(super) fn target(&self, address: SocketAddr) -> Target {
        Target {
            address,
            metrics_path: self.metrics_path.clone(),
            spec: Arc::clone(&self.spec),
            draining: false,
            labels: self.labels.clone(),
        }
    }
}

/// Asks again and again, and judges the answers.
#[derive(Debug)]
pub(super) struct Watch {
    pub(super) discovery: Discovery,
    next: Timestamp,
    under_way: Option<u32>,
    /// Of the answer that is in force.
    digest: Option<u64>,
    /// The newest answer had no members, and the pool had some.
    emptied: bool,
}

impl Watch {
    pub(super) fn new(discovery: Discovery, now: Timestamp) -> Self {
        Self { discovery, next: now, under_way: None, digest: None, emptied: false }
    }

    /// Whether to ask now. A call that was never answered is given up then; the host gives it as long.
    pub(super) fn is_due(&mut self, now: Timestamp) -> bool {
        let interval = self.discovery.interval;
        // The clock may have stepped back.
        let due = self.next <= now || self.next > now.plus(interval);
        if due {
            self.next = now.plus(interval);
            self.under_way = None;
        }
        due
    }

    pub(super) fn started(&mut self, call: u32) {
        self.under_way = Some(call);
    }

    /// Whether this is the newest call.
    pub(super) fn expects(&self, call: u32) -> bool {
        self.under_way == Some(call)
    }

    /// What the answer says, if it is news. A pool that has members, as `populated` tells, loses all of them only if two
    /// answers in a row say so: a proxy that is about to replace a cluster may show it empty for a moment.
    pub(super) fn judge(&mut self, answer: Answer<'_>, populated: bool) -> Result<Option<Listing>, Fault> {
        self.under_way = None;
        match answer.status {
            Some(200) if answer.complete => {}
            Some(200) => return Err(Fault::TooLong),
            status => return Err(Fault::Status(status)),
        }
        let digest = Some(xxh3_64(answer.body));
        if self.digest == digest {
            self.emptied = false;
            return Ok(None);
        }
        let listing = clusters::read(answer.body, &self.discovery.cluster)?;
        let waits = listing.members.is_empty() && populated && !self.emptied;
        self.emptied = waits;
        if waits {
            return Ok(None);
        }
        self.digest = digest;
        Ok(Some(listing))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_question_names_the_cluster_whatever_its_name() {
        let path = |cluster: &str| {
            let discovery = Discovery {
                cluster: cluster.into(),
                admin_cluster: "admin".into(),
                interval: Duration::from_secs(1),
                metrics_path: "/metrics".into(),
                spec: Arc::new(EngineSpec::auto()),
                labels: BTreeMap::new(),
            };
            discovery.path()
        };
        assert_eq!(path("model_servers"), "/clusters?format=json&filter=%5Emodel_servers%24");
        for name in ["outbound|80||ü.local", "a&b=c", "(x", "a b", "50%"] {
            assert_eq!(path(name), "/clusters?format=json");
        }
    }
}
