//! What is learned, as it lies in shared data.
//!
//! | bytes | what |
//! |---|---|
//! | 24 | prefill of all requests |
//! | 4 | number of endpoints, little-endian, and a line for each: |
//! | 120 | id, when last observed, first tokens, pace, cache, failures |
//! | | to the end a line for each model: |
//! | 40 | hash of its name, when last observed, lengths |
//!
//! Another number learned of endpoints is another member of [`Endpoint`].

use super::fading::Fading;
use super::points::Points;
use super::trouble::Trouble;
use crate::clock::Timestamp;
use crate::prefix::Correction;

/// Endpoints known at once: as many as a pool can have, and as many that left.
pub(super) const MAX_ENDPOINTS: usize = 2048;

/// Models known at once.
pub(super) const MAX_MODELS: usize = 1024;

/// Everything that is learned. Default: nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Record {
    /// Seconds of prefill at speed 1, over all requests.
    pub(super) prefill: Fading<2>,
    pub(super) endpoints: Lines<Endpoint>,
    pub(super) models: Lines<Model>,
}

/// What is learned of an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Endpoint {
    /// Seconds to the first token, over those predicted.
    pub(super) first_tokens: Points,
    /// Seconds per output token, in those predicted.
    pub(super) pace: Fading<2>,
    /// How much its cache really holds.
    pub(super) cache: Correction,
    /// Whether it fails its requests.
    pub(super) trouble: Trouble,
}

/// What is learned of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Model {
    /// Output tokens.
    pub(super) lengths: Fading<2>,
}

/// A line of a table.
pub(super) trait Line: Copy + Default {
    /// Most lines.
    const MAX: usize;

    /// Puts what was observed later behind this.
    fn then(&mut self, later: &Self);
    fn write(&self, bytes: &mut Vec<u8>);
    fn read(bytes: &mut &[u8]) -> Option<Self>;
}

/// Lines by key, in the order of the keys, with the time of the last observation.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Lines<T> {
    lines: Vec<(u64, Timestamp, T)>,
}

impl Record {
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Puts what was observed later behind this.
    pub(super) fn then(&mut self, later: &Self) {
        self.prefill.then(&later.prefill);
        self.endpoints.then(&later.endpoints);
        self.models.then(&later.models);
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.prefill.write(&mut bytes);
        bytes.extend_from_slice(&(self.endpoints.lines.len() as u32).to_le_bytes());
        self.endpoints.write(&mut bytes);
        self.models.write(&mut bytes);
        bytes
    }

    pub(super) fn decode(mut bytes: &[u8]) -> Option<Self> {
        let bytes = &mut bytes;
        let prefill = Fading::read(bytes)?;
        let (endpoints, rest) = bytes.split_first_chunk()?;
        *bytes = rest;
        Some(Self {
            prefill,
            endpoints: Lines::read(bytes, u32::from_le_bytes(*endpoints) as usize)?,
            models: Lines::read(bytes, usize::MAX)?,
        })
    }
}

impl<T: Line> Lines<T> {
    pub(super) fn get(&self, key: u64) -> Option<&T> {
        let at = self.find(key).ok()?;
        self.lines.get(at).map(|(_, _, value)| value)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        self.lines.iter().map(|(key, _, value)| (*key, value))
    }

    /// Writes to the line of `key`, a new one if there is none. What was not observed for longest makes room.
    pub(super) fn with(&mut self, key: u64, now: Timestamp, change: impl FnOnce(&mut T)) {
        let at = self.find(key).unwrap_or_else(|at| {
            self.lines.insert(at, (key, now, T::default()));
            at
        });
        if let Some((_, seen, value)) = self.lines.get_mut(at) {
            *seen = now;
            change(value);
        }
        if self.lines.len() > T::MAX {
            let others = self.lines.iter().enumerate().filter(|(_, line)| line.0 != key);
            let oldest = others.min_by_key(|(_, (_, seen, _))| *seen).map(|(at, _)| at);
            oldest.map(|at| self.lines.remove(at));
        }
    }

    /// Keeps the lines that `keep` says, given key and time of the last observation.
    pub(super) fn retain(&mut self, keep: impl Fn(u64, Timestamp) -> bool) {
        self.lines.retain(|(key, seen, _)| keep(*key, *seen));
    }

    fn then(&mut self, later: &Self) {
        for (key, seen, value) in &later.lines {
            self.with(*key, *seen, |line| line.then(value));
        }
    }

    fn find(&self, key: u64) -> Result<usize, usize> {
        self.lines.binary_search_by_key(&key, |(key, _, _)| *key)
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        for (key, Timestamp(seen), value) in &self.lines {
            bytes.extend_from_slice(&key.to_le_bytes());
            bytes.extend_from_slice(&seen.to_le_bytes());
            value.write(bytes);
        }
    }

    /// At most `count` lines, fewer if the bytes end before.
    fn read(bytes: &mut &[u8], count: usize) -> Option<Self> {
        let mut lines = Vec::new();
        while lines.len() < count && !bytes.is_empty() {
            let (key, rest) = bytes.split_first_chunk()?;
            let (seen, rest) = rest.split_first_chunk()?;
            *bytes = rest;
            lines.push((u64::from_le_bytes(*key), Timestamp(u64::from_le_bytes(*seen)), T::read(bytes)?));
        }
        lines.is_sorted_by(|(a, ..), (b, ..)| a < b).then_some(Self { lines })
    }
}

impl Line for Endpoint {
    const MAX: usize = MAX_ENDPOINTS;

    fn then(&mut self, later: &Self) {
        self.first_tokens.then(&later.first_tokens);
        self.pace.then(&later.pace);
        self.cache.then(&later.cache);
        self.trouble.then(&later.trouble);
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        self.first_tokens.write(bytes);
        self.pace.write(bytes);
        bytes.extend_from_slice(&self.cache.to_bytes());
        self.trouble.write(bytes);
    }

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        let (first_tokens, pace) = (Fading::read(bytes)?, Fading::read(bytes)?);
        let (cache, rest) = bytes.split_first_chunk()?;
        *bytes = rest;
        let cache = Correction::from_bytes(*cache);
        Some(Self { first_tokens, pace, cache, trouble: Trouble::read(bytes)? })
    }
}

impl Line for Model {
    const MAX: usize = MAX_MODELS;

    fn then(&mut self, later: &Self) {
        self.lengths.then(&later.lengths);
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        self.lengths.write(bytes);
    }

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        Some(Self { lengths: Fading::read(bytes)? })
    }
}
