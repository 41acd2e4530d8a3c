//! Whether an endpoint fails the requests it gets.
//!
//! The weight of its failures: each one adds to it, each success halves it, and so do ten seconds without either. Above 2.5 the
//! endpoint is failing: three failures close together are enough, and of a server that fails at random, it has to be more than
//! half. Then nothing but a success makes it less, since an endpoint that gets no requests proves nothing by the time that
//! passes. One success is enough, as the weight is 5 at most; but the next failure soon after makes it failing again.
//!
//! What may have been a failure or not makes an endpoint suspect: it adds to the weight up to 2.5, but never makes it failing.
//!
//! A failing endpoint gets a request now and then, a probe. The first comes a second after it began to fail, and each of the
//! others when as much time has passed again, 30 s at most: at 1, 2, 4, 8, 16, 32, 62 seconds and so on. Neither a probe without
//! an answer nor any other request in flight changes that. One that hangs so keeps no probe away for long, a busy server that is
//! well again needs not be idle first, and one at which all hang gets no more than any other. The price is that a probe whose
//! client leaves before the answer counts like one that failed: the next takes twice as long.

#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::clock::Timestamp;

/// Above this weight an endpoint is failing.
const FAILING: f32 = 2.5;
/// More does not count: one success must do.
const MOST: f32 = 2.0 * FAILING;
/// What a success leaves.
const KEEP: f32 = 0.5;
/// What a tenth of a second leaves: half after 10 s.
const KEEP_TENTH: f32 = 0.993_092_5;
/// Shortest and longest time between two probes.
const BETWEEN_PROBES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// Whether an endpoint may get a request, after those that it failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Standing {
    /// It answers.
    #[default]
    Sound,
    /// It is failing, and it is time to see whether it still is.
    Due,
    /// It is failing.
    Failing,
}

/// What is known of an endpoint's failures. Default: none.
///
/// Some observations do to the weight before them what one function does, `min(kept·weight + sum, most)`, and one such function
/// after another is a third. So those of one worker can be gathered by themselves and put behind what others wrote.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Trouble {
    kept: f32,
    /// The weight, if there was none before.
    sum: f32,
    most: f32,
    /// Added later, as far as it makes nothing failing. None in what all know.
    suspected: f32,
    /// When it failed last; if it is failing, since when.
    at: Timestamp,
    probed_at: Timestamp,
}

impl Default for Trouble {
    fn default() -> Self {
        let never = Timestamp::default();
        Self { kept: 1.0, sum: 0.0, most: MOST, suspected: 0.0, at: never, probed_at: never }
    }
}

impl Trouble {
    pub(super) fn failed(&mut self, weight: f32, now: Timestamp) {
        self.put(1.0, weight, MOST);
        self.at = now;
    }

    /// It may have failed.
    pub(super) fn suspected(&mut self, weight: f32, now: Timestamp) {
        self.suspected += weight;
        self.at = now;
    }

    pub(super) fn succeeded(&mut self) {
        self.suspected *= KEEP;
        self.put(KEEP, 0.0, KEEP * MOST);
    }

    /// There is nothing that a success would make less.
    pub(super) fn is_over(&self) -> bool {
        self.sum + self.suspected < 0.01
    }

    /// Puts what was observed later behind this.
    pub(super) fn then(&mut self, later: &Self) {
        let was_failing = self.is_failing();
        if !was_failing {
            let tenths = later.at.since(self.at).as_millis() / 100;
            self.put(KEEP_TENTH.powi(i32::try_from(tenths).unwrap_or(i32::MAX)), 0.0, MOST);
            self.at = self.at.max(later.at);
        }
        self.put(later.kept, later.sum, later.most);
        self.sum = self.sum.max((self.sum + later.suspected).min(FAILING));
        self.probed_at = self.probed_at.max(later.probed_at);
    }

    /// What this means for the next request.
    pub(super) fn standing(&self, now: Timestamp) -> Standing {
        let (shortest, longest) = BETWEEN_PROBES;
        let (last, grown) = (self.probed_at.max(self.at), self.probed_at.since(self.at));
        let wait = grown.clamp(shortest, longest);
        match () {
            () if !self.is_failing() => Standing::Sound,
            // Or the clock stepped back, and nobody knows how long ago that was.
            () if now.since(last) >= wait || last > now => Standing::Due,
            () => Standing::Failing,
        }
    }

    /// Takes the probe that is due.
    pub(super) fn probe(&mut self, now: Timestamp) {
        self.at = self.at.min(now);
        self.probed_at = now;
    }

    pub(super) fn is_failing(&self) -> bool {
        self.sum > FAILING
    }

    fn put(&mut self, kept: f32, sum: f32, most: f32) {
        self.kept *= kept;
        self.sum = (kept * self.sum + sum).min(most);
        self.most = (kept * self.most + sum).min(most);
    }

    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        for number in [self.kept, self.sum, self.most] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        for Timestamp(millis) in [self.at, self.probed_at] {
            bytes.extend_from_slice(&millis.to_le_bytes());
        }
    }

    pub(super) fn read(bytes: &mut &[u8]) -> Option<Self> {
        let (numbers, rest) = bytes.split_first_chunk::<12>()?;
        let (times, rest) = rest.split_first_chunk::<16>()?;
        *bytes = rest;
        let number = |at: usize| {
            let bytes = numbers.as_chunks().0.get(at)?;
            Some(f32::from_le_bytes(*bytes)).filter(|number| (0.0..=MOST).contains(number))
        };
        let time = |at: usize| times.as_chunks().0.get(at).map(|bytes| Timestamp(u64::from_le_bytes(*bytes)));
        let (kept, sum, most) = (number(0)?, number(1)?, number(2)?);
        Some(Self { kept, sum, most, suspected: 0.0, at: time(0)?, probed_at: time(1)? })
    }
}
