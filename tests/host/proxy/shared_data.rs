//! The key-value store that all VMs of a proxy share.

use std::collections::BTreeMap;

use proxy_wasm::types::Status;

use super::host::Host;

/// The store, and how often each key was read.
#[derive(Debug, Default)]
pub struct SharedData {
    entries: BTreeMap<Vec<u8>, (Vec<u8>, u32)>,
    last_cas: u32,
    reads: BTreeMap<Vec<u8>, usize>,
}

impl SharedData {
    /// Value and compare-and-set token.
    pub fn get(&mut self, key: &[u8]) -> Option<(Vec<u8>, u32)> {
        *self.reads.entry(key.to_vec()).or_default() += 1;
        self.entries.get(key).cloned()
    }

    /// Writes as the host does.
    pub fn set(&mut self, host: Host, key: &[u8], value: &[u8], cas: u32) -> Status {
        let unconditional = cas == 0 && host.cas_zero_overwrites;
        let fits = match self.entries.get(key) {
            Some((_, current)) => unconditional || cas == *current,
            None => cas == 0 || host.cas_zero_overwrites,
        };
        if !fits {
            return Status::CasMismatch;
        }
        self.put(key, value.to_vec());
        Status::Ok
    }

    /// Writes behind the host's back.
    pub fn put(&mut self, key: &[u8], value: Vec<u8>) {
        self.last_cas += 1;
        self.entries.insert(key.to_vec(), (value, self.last_cas));
    }

    /// The keys in use.
    pub fn keys(&self) -> Vec<Vec<u8>> {
        self.entries.keys().cloned().collect()
    }

    /// The value as it lies there; does not count as a read.
    pub fn peek(&self, key: &[u8]) -> Option<&[u8]> {
        self.entries.get(key).map(|(value, _)| value.as_slice())
    }

    /// How often `key` was read.
    pub fn reads(&self, key: &[u8]) -> usize {
        self.reads.get(key).copied().unwrap_or(0)
    }
}
