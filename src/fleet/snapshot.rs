//! The fleet as bytes in shared data.

use serde::{Deserialize, Serialize};

use super::Endpoint;
use crate::envelope;

/// Everything known of a pool at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Grows with each publication; not part of the payload but of its envelope.
    #[serde(skip)]
    pub version: u64,
    /// Secret of the prefix hashes, the same for all workers and unknown to clients, who could else craft prompts that
    /// collide.
    pub seed: u64,
    /// The endpoints in the configuration's order.
    pub endpoints: Vec<Endpoint>,
}

impl Snapshot {
    /// The value to store under `key`.
    pub fn encode(&self, key: &[u8]) -> Vec<u8> {
        // Serializing into memory fails only for types that this one does not hold.
        let payload = postcard::to_allocvec(self).unwrap_or_default();
        envelope::seal(key, self.version, &payload)
    }

    /// Reads a value found under `key`. `None`: torn, foreign, or written by another version of the filter.
    pub fn decode(key: &[u8], bytes: &[u8]) -> Option<Self> {
        let sealed = envelope::open(key, bytes)?;
        let mut snapshot: Self = postcard::from_bytes(sealed.payload).ok()?;
        snapshot.version = sealed.version;
        Some(snapshot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;
    use crate::fleet::Health;
    use crate::scrape::{Lora, Reading};

    #[test]
    fn what_was_published_is_what_is_read() {
        let mut busy = Endpoint::new("10.0.0.1:8000".parse().unwrap());
        busy.health = Health::Serving;
        let lora = Lora { max: 2, running: vec![b"sql".as_slice().into()], waiting: vec![b"\xff".as_slice().into()] };
        busy.signals.update(
            Reading { waiting: Some(4), kv_usage: Some(0.25), lora: Some(lora), ..Reading::default() },
            Timestamp(1_796_000_000_000),
        );
        let unknown = Endpoint::new("[::1]:8001".parse().unwrap());
        let snapshot = Snapshot { version: 7, seed: 9, endpoints: vec![busy, unknown] };

        let bytes = snapshot.encode(b"key");

        assert_eq!(Snapshot::decode(b"key", &bytes), Some(snapshot));
        assert_eq!(Snapshot::decode(b"other", &bytes), None);
        assert_eq!(Snapshot::decode(b"key", &bytes[..bytes.len() - 1]), None);
    }
}
