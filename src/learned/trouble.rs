//! Whether an endpoint fails the requests it gets.
//!
//! The weight of its failures: each one adds to it, each success halves it, and so do ten seconds without either. Above 2.5 the
//! endpoint is failing: three failures close together are enough, and of a server that fails at random, it has to be more than
//! half. Then nothing but a success makes it less, since an endpoint that gets no requests proves nothing by the time that
//! passes. One success is enough, as the weight is 5 at most; but the next failure soon after makes it failing again.
//!
//! A failing endpoint gets a request now and then, a probe. The first comes a second after it began to fail, and each of the
//! others when as much time has passed again, 30 s at most: at 1, 2, 4, 8, 16, 32, 62 seconds and so on.

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
    /// When it failed last; if it is failing, since when.
    at: Timestamp,
    probed_at: Timestamp,
}

impl Default for Trouble {
    fn default() -> Self {
        Self { kept: 1.0, sum: 0.0, most: MOST, at: Timestamp::default(), probed_at: Timestamp::default() }
    }
}

impl Trouble {
    pub(super) fn failed(&mut self, weight: f32, now: Timestamp) {
        self.put(1.0, weight, MOST);
        self.at = now;
    }

    pub(super) fn succeeded(&mut self) {
        self.put(KEEP, 0.0, KEEP * MOST);
    }

    /// There is nothing that a success would make less.
    pub(super) fn is_over(&self) -> bool {
        self.sum < 0.01
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
        self.probed_at = self.probed_at.max(later.probed_at);
    }

    /// What this means for the next request, with so many `in_flight`. One that hangs must not keep a probe away for ever.
    pub(super) fn standing(&self, in_flight: u32, now: Timestamp) -> Standing {
        let (shortest, longest) = BETWEEN_PROBES;
        let (last, grown) = (self.probed_at.max(self.at), self.probed_at.since(self.at));
        let wait = if in_flight > 0 { longest } else { grown.clamp(shortest, longest) };
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
        Some(Self { kept: number(0)?, sum: number(1)?, most: number(2)?, at: time(0)?, probed_at: time(1)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 1_796_000_000_000;

    fn at(seconds: u64) -> Timestamp {
        Timestamp(START + 1000 * seconds)
    }

    /// Puts one observation behind what is known.
    fn observe(known: &mut Trouble, failed: bool, now: Timestamp) {
        let mut news = Trouble::default();
        if failed {
            news.failed(1.0, now)
        } else {
            news.succeeded()
        }
        known.then(&news);
    }

    fn failing() -> Trouble {
        let mut known = Trouble::default();
        (0..3).for_each(|_| observe(&mut known, true, at(0)));
        known
    }

    #[test]
    fn three_failures_close_together_are_several() {
        let mut known = Trouble::default();
        for (second, standing) in [(0, Standing::Sound), (1, Standing::Sound), (2, Standing::Failing)] {
            observe(&mut known, true, at(second));
            assert_eq!(known.standing(0, at(second)), standing);
        }
    }

    #[test]
    fn failures_far_apart_are_not() {
        let mut known = Trouble::default();
        for minute in 0..100 {
            observe(&mut known, true, at(60 * minute));
            assert_eq!(known.standing(0, at(60 * minute)), Standing::Sound);
        }
    }

    #[test]
    fn one_failure_in_three_is_not_failing_and_three_in_four_are() {
        let run = |failed: fn(u32) -> bool| {
            let mut known = Trouble::default();
            (0..100)
                .filter(|i| {
                    observe(&mut known, failed(*i), at(u64::from(*i)));
                    known.is_failing()
                })
                .count()
        };
        assert_eq!(run(|i| i % 3 == 0), 0);
        assert!(run(|i| i % 4 != 0) > 20);
    }

    #[test]
    fn probes_grow_rarer_up_to_one_in_half_a_minute() {
        let (mut known, mut probes) = (failing(), Vec::new());
        for second in 0..130 {
            if known.standing(0, at(second)) == Standing::Due {
                known.probe(at(second));
                observe(&mut known, true, at(second));
                probes.push(second);
            }
        }
        assert_eq!(probes, [1, 2, 4, 8, 16, 32, 62, 92, 122]);
    }

    #[test]
    fn no_probe_goes_beside_another_unless_that_one_hangs() {
        let mut known = failing();
        known.probe(at(1));
        assert_eq!(known.standing(1, at(30)), Standing::Failing);
        assert_eq!(known.standing(0, at(30)), Standing::Due);
        assert_eq!(known.standing(1, at(31)), Standing::Due);
    }

    #[test]
    fn one_success_restores_and_the_next_failure_soon_after_is_one_too_many() {
        let mut known = failing();
        (0..100).for_each(|_| observe(&mut known, true, at(1)));
        assert_eq!(known.standing(0, at(1)), Standing::Due);
        observe(&mut known, false, at(1));
        assert_eq!(known.standing(0, at(1)), Standing::Sound);
        observe(&mut known, true, at(2));
        assert_eq!(known.standing(0, at(2)), Standing::Failing);
    }

    #[test]
    fn the_order_within_a_batch_counts() {
        let mut known = failing();
        let mut news = Trouble::default();
        (0..30).for_each(|_| news.failed(1.0, at(1)));
        news.succeeded();
        known.then(&news);
        assert_eq!(known.standing(0, at(1)), Standing::Sound, "it answered last");
    }

    #[test]
    fn a_clock_that_steps_back_keeps_no_probe_away_and_lets_no_herd_in() {
        let (mut known, hour_ago) = (failing(), Timestamp(START - 3_600_000));
        assert_eq!(known.standing(0, hour_ago), Standing::Due);
        known.probe(hour_ago);
        assert_eq!(known.standing(0, hour_ago), Standing::Failing);
    }

    #[test]
    fn what_is_written_is_what_is_read() {
        let (known, mut bytes) = (failing(), Vec::new());
        known.write(&mut bytes);
        assert_eq!(Trouble::read(&mut bytes.as_slice()), Some(known));
        (0..bytes.len()).for_each(|end| assert_eq!(Trouble::read(&mut &bytes[..end]), None));
    }
}
