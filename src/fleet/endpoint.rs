//! One model server: address, health and signals.

use std::net::SocketAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::Membership;
use crate::clock::Timestamp;
use crate::id::EndpointId;
use crate::scrape::{Lora, Reading, Signal};

/// How far a signal's time may be ahead. What is further ahead was read before the clock stepped back, who knows when.
const MAX_AHEAD: Duration = Duration::from_secs(2);

/// What is believed of a server's life. An answer of any kind shows that it lives, unless it is a server error; the proxy
/// answers with one for a server that refuses the connection. No answer at all means busy before it means dead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Health {
    /// Nothing is known: not scraped yet, or it answers but has no metrics. Takes part.
    #[default]
    Assumed,
    /// The newest scrapes gave metrics.
    Serving,
    /// Too many scrapes in a row were refused or answered with a server error, or none was answered for too long.
    Unreachable,
}

/// The signals of one server, each with its own age: a text that lacks a family leaves the others fresh.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Signals {
    /// Requests queued in the engine.
    pub waiting: Option<Signal<u32>>,
    /// Requests in the running batch.
    pub running: Option<Signal<u32>>,
    /// Share of the KV cache in use by running requests, 0..=1.
    pub kv_usage: Option<Signal<f64>>,
    /// Tokens per KV block.
    pub block_size: Option<Signal<u32>>,
    /// KV blocks of the server.
    pub num_blocks: Option<Signal<u32>>,
    /// Adapters present.
    pub lora: Option<Signal<Lora>>,
}

/// A model server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Endpoint {
    /// `ip:port` as the proxy's override wants it.
    pub address: Box<str>,
    /// How often it came back from being unreachable. It may have been restarted, so what was remembered of its cache is
    /// no longer so.
    pub generation: u32,
    /// Its life.
    pub health: Health,
    /// When it came to a fleet that was there already, or came back; 0 if it was there from the beginning.
    pub joined: Timestamp,
    /// Its signals.
    pub signals: Signals,
    /// What the proxy says of it.
    pub membership: Membership,
}

impl Endpoint {
    /// A server of which nothing is known yet.
    pub fn new(address: SocketAddr) -> Self {
        Self {
            address: address.to_string().into_boxed_str(),
            generation: 0,
            health: Health::Assumed,
            joined: Timestamp(0),
            signals: Signals::default(),
            membership: Membership::default(),
        }
    }

    /// Its health, as far as scrapes and the proxy agree: either may know that it does not serve.
    pub fn believed(&self) -> Health {
        if self.membership == Membership::Failing { Health::Unreachable } else { self.health }
    }

    /// The endpoint's name in the ledger and the prefix index, another one in each generation.
    pub fn id(&self) -> EndpointId {
        EndpointId(xxh3_64_with_seed(self.address.as_bytes(), u64::from(self.generation)))
    }
}

/// An address as it is written in snapshots and compared everywhere: lower case, IPv6 in brackets with its longest run of
/// zeros left out. An IPv4 address written as IPv6 stays IPv6, as Envoy keeps it. `None`: it is no IP address with a port.
pub(crate) fn canonical(address: &[u8]) -> Option<String> {
    let address: SocketAddr = std::str::from_utf8(address).ok()?.parse().ok()?;
    Some(address.to_string())
}

impl Signals {
    /// Takes over what `reading` says; what it does not say keeps its value and goes on ageing.
    pub fn update(&mut self, reading: Reading, at: Timestamp) {
        renew(&mut self.waiting, reading.waiting, at);
        renew(&mut self.running, reading.running, at);
        renew(&mut self.kv_usage, reading.kv_usage, at);
        renew(&mut self.block_size, reading.block_size, at);
        renew(&mut self.num_blocks, reading.num_blocks, at);
        renew(&mut self.lora, reading.lora, at);
    }

    /// When the newest of them was read.
    pub fn newest(&self) -> Option<Timestamp> {
        let Self { waiting, running, kv_usage, block_size, num_blocks, lora } = self;
        let counts = [waiting, running, block_size, num_blocks].into_iter().flatten().map(|signal| signal.at);
        counts.chain(kv_usage.as_ref().map(|signal| signal.at)).chain(lora.as_ref().map(|signal| signal.at)).max()
    }

    /// KV capacity in tokens. It is a property of the server's start-up, so age does not silence it.
    pub fn capacity_tokens(&self) -> Option<u64> {
        let (size, blocks) = (self.block_size?.value, self.num_blocks?.value);
        Some(u64::from(size) * u64::from(blocks)).filter(|tokens| *tokens > 0)
    }
}

/// The value if it is not older than `stale_after`, as far as the clock can tell.
pub(crate) fn fresh<T>(signal: Option<&Signal<T>>, now: Timestamp, stale_after: Duration) -> Option<&T> {
    let is_fresh = |at: Timestamp| now.since(at) <= stale_after && at.since(now) <= MAX_AHEAD;
    signal.filter(|signal| is_fresh(signal.at)).map(|signal| &signal.value)
}

fn renew<T>(signal: &mut Option<Signal<T>>, value: Option<T>, at: Timestamp) {
    if let Some(value) = value {
        *signal = Some(Signal { value, at });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partial_scrape_refreshes_only_what_it_said() {
        let mut signals = Signals::default();
        signals.update(Reading { waiting: Some(3), running: Some(7), ..Reading::default() }, Timestamp(1_000));
        signals.update(Reading { running: Some(8), ..Reading::default() }, Timestamp(5_000));

        let (now, limit) = (Timestamp(5_500), Duration::from_secs(2));
        assert_eq!(fresh(signals.running.as_ref(), now, limit), Some(&8));
        assert_eq!(fresh(signals.waiting.as_ref(), now, limit), None, "waiting was said 4.5 s ago");
    }

    #[test]
    fn ports_of_one_address_are_different_endpoints() {
        let endpoint = |address: &str| Endpoint::new(address.parse().unwrap());
        assert_ne!(endpoint("10.0.0.1:8000").id(), endpoint("10.0.0.1:8001").id());
        assert_eq!(&*endpoint("[::1]:8000").address, "[::1]:8000");
    }

    #[test]
    fn an_address_is_written_in_one_way_only() {
        let written = |address: &str| canonical(address.as_bytes());
        for (address, canonical) in [
            ("10.0.0.1:8000", "10.0.0.1:8000"),
            ("[2001:DB8:0:0:0:0:0:1]:8000", "[2001:db8::1]:8000"),
            ("[::FFFF:10.0.0.1]:8000", "[::ffff:10.0.0.1]:8000"),
            ("[::ffff:a00:1]:8000", "[::ffff:10.0.0.1]:8000"),
        ] {
            assert_eq!(written(address).as_deref(), Some(canonical));
        }
        for other in ["", "10.0.0.1", "::1:8000", "localhost:8000", "10.0.0.01:8000", "/tmp/x.sock"] {
            assert_eq!(written(other), None, "{other}");
        }
    }

    #[test]
    fn a_signal_from_before_the_clock_stepped_back_is_not_fresh_until_the_clock_catches_up() {
        let (hour, limit) = (3_600_000, Duration::from_secs(2));
        let signal = Some(Signal { value: 0, at: Timestamp(2 * hour) });
        assert_eq!(fresh(signal.as_ref(), Timestamp(2 * hour - 500), limit), Some(&0), "a clock that was trimmed");
        for now in [hour, hour + hour / 2, 2 * hour - 2_001] {
            assert_eq!(fresh(signal.as_ref(), Timestamp(now), limit), None);
        }
    }
}
