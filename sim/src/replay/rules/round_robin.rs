//! `round-robin`: in turn, knowing nothing.

use rand_pcg::Pcg64;

use super::{Call, Rule, View};

pub(super) struct RoundRobin(usize);

impl RoundRobin {
    pub(super) fn starting_at(place: usize) -> Self {
        Self(place)
    }
}

impl Rule for RoundRobin {
    fn choose(&mut self, _: &Call, view: &View<'_>, _: &mut Pcg64) -> usize {
        let place = self.0 % view.endpoints.len().max(1);
        self.0 = place + 1;
        place
    }
}
