//! Sums that fade.

/// Sums over observations, each of which loses weight with every one that follows.
///
/// What some observations do to such a sum is to leave a share of it and to add something. So those of one worker can be
/// gathered by themselves, from nothing, and put behind what others wrote meanwhile: batches of many workers come to the
/// same as one worker that saw all of them in this order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Fading<const N: usize> {
    /// What all observations have left of what was before them, 0..=1.
    pub(super) kept: f64,
    pub(super) sums: [f64; N],
}

impl<const N: usize> Default for Fading<N> {
    fn default() -> Self {
        Self { kept: 1.0, sums: [0.0; N] }
    }
}

impl<const N: usize> Fading<N> {
    /// Adds an observation; the ones before keep this share of their weight.
    pub(super) fn add(&mut self, keep: f64, values: [f64; N]) {
        self.then(&Self { kept: keep, sums: values });
    }

    /// Puts `later` behind this.
    pub(super) fn then(&mut self, later: &Self) {
        self.kept *= later.kept;
        for (sum, more) in self.sums.iter_mut().zip(later.sums) {
            *sum = *sum * later.kept + more;
        }
    }

    /// Takes in what was observed elsewhere at the same time: neither makes the other fade, but both what was before.
    pub(super) fn pool(&mut self, other: &Self) {
        self.kept *= other.kept;
        self.sums.iter_mut().zip(other.sums).for_each(|(sum, more)| *sum += more);
    }

    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        for number in [self.kept].iter().chain(&self.sums) {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
    }

    /// Takes what [`Self::write`] wrote off the beginning of `bytes`.
    pub(super) fn read(bytes: &mut &[u8]) -> Option<Self> {
        let mut fading = Self { kept: number(bytes)?, sums: [0.0; N] };
        for sum in &mut fading.sums {
            *sum = number(bytes)?;
        }
        (0.0..=1.0).contains(&fading.kept).then_some(fading)
    }
}

impl Fading<2> {
    /// The mean of the observations, with `prior` as good as `weight` of them before the first.
    pub(super) fn mean(&self, prior: f64, weight: f64) -> f64 {
        let [n, sum] = self.sums;
        let before = self.kept * weight;
        if n + before > 0.0 { (sum + before * prior) / (n + before) } else { prior }
    }
}

/// A number that is one.
fn number(bytes: &mut &[u8]) -> Option<f64> {
    let (number, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(f64::from_le_bytes(*number)).filter(|number| number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_one_after_the_other_are_the_same_as_all_at_once() {
        let add = |fading: &mut Fading<2>, range: std::ops::Range<u32>| {
            range.for_each(|i| fading.add(0.9, [1.0, f64::from(i)]));
        };
        let mut once = Fading::default();
        add(&mut once, 0..20);

        let mut shared = Fading::default();
        for range in [0..7, 7..8, 8..8, 8..20] {
            let mut batch = Fading::default();
            add(&mut batch, range);
            shared.then(&batch);
        }
        for (one, other) in once.sums.into_iter().zip(shared.sums) {
            assert!((one - other).abs() < 1e-9);
        }
    }

    #[test]
    fn a_prior_fades_like_the_observations_it_stands_for() {
        let mut fading = Fading::default();
        assert_eq!(fading.mean(256.0, 2.0), 256.0);
        fading.add(0.5, [1.0, 100.0]);
        assert_eq!(fading.mean(256.0, 2.0), (256.0 + 100.0) / 2.0);
        (0..60).for_each(|_| fading.add(0.5, [1.0, 100.0]));
        assert!((fading.mean(256.0, 2.0) - 100.0).abs() < 1e-9);
    }

    #[test]
    fn what_is_no_number_is_not_read() {
        let written = |kept, sum| {
            let mut bytes = Vec::new();
            Fading { kept, sums: [sum] }.write(&mut bytes);
            bytes
        };
        assert_eq!(Fading::<1>::read(&mut &written(0.5, 3.0)[..]), Some(Fading { kept: 0.5, sums: [3.0] }));
        for odd in [written(f64::NAN, 0.0), written(2.0, 0.0), written(-0.1, 0.0), written(0.5, f64::INFINITY)] {
            assert_eq!(Fading::<1>::read(&mut &odd[..]), None);
        }
        assert_eq!(Fading::<2>::read(&mut &written(0.5, 3.0)[..]), None, "cut off");
    }
}
