//! The collector's fleet follows the list of members.

use super::clusters::Member;
use super::vitals::Vitals;
use super::{Answer, Collector, Discovery, Endpoint, Fault, Listing, MOST_ENDPOINTS, Membership};
use crate::clock::Timestamp;

/// What came of a list of members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listed {
    /// Nothing new.
    Same,
    /// Others belong to the pool now, or stand otherwise.
    Changed {
        /// Endpoints that joined.
        came: usize,
        /// Endpoints that left.
        went: usize,
        /// Members for which there is no room.
        left_out: usize,
    },
    /// It is none; the one before stays in force.
    Unusable(Fault),
}

impl Collector {
    /// Whom to ask for the members now, if anyone.
    pub fn ask_members(&mut self, now: Timestamp) -> Option<&Discovery> {
        let watch = self.watch.as_mut()?;
        watch.is_due(now).then_some(&watch.discovery)
    }

    /// The question is under way as host call `call`.
    pub fn asked_members(&mut self, call: u32) {
        if let Some(watch) = &mut self.watch {
            watch.started(call);
        }
    }

    /// Whether this call was for the members.
    pub fn expects_members(&self, call: u32) -> bool {
        self.watch.as_ref().is_some_and(|watch| watch.expects(call))
    }

    /// Takes in the answer to the newest question.
    pub fn members_answered(&mut self, answer: Answer<'_>, now: Timestamp) -> Listed {
        let populated = self.targets.len() > self.written;
        let Some(watch) = &mut self.watch else { return Listed::Same };
        match watch.judge(answer, populated) {
            Ok(None) => Listed::Same,
            Ok(Some(listing)) => self.follow(listing, now),
            Err(fault) => Listed::Unusable(fault),
        }
    }

    /// Until there is an answer, the members are those that the holder of the lease before knew.
    pub(super) fn remember_members(&mut self, previous: &[Endpoint], now: Timestamp) {
        self.young = false;
        if self.watch.is_none() {
            return;
        }
        let mut listing = Listing::default();
        for endpoint in previous.iter().filter(|endpoint| endpoint.membership != Membership::Unlisted) {
            if let Ok(address) = endpoint.address.parse() {
                listing.add(Member { address, membership: endpoint.membership });
            }
        }
        self.follow(listing, now);
        self.changed = true;
    }

    /// Endpoints that are written in the configuration stay whatever the list says; the others come and go with it.
    fn follow(&mut self, Listing { members, mut left_out }: Listing, now: Timestamp) -> Listed {
        let (mut came, mut went) = (0, 0);
        // The first list of all is news even if it is empty.
        let mut changed = self.fleet.version == 0;
        for at in (0..self.targets.len()).rev() {
            let address = self.targets.get(at).map(|target| target.address);
            if members.iter().any(|member| Some(member.address) == address) {
                continue;
            }
            if at < self.written {
                changed |= self.mark(at, Membership::Unlisted);
            } else {
                self.targets.remove(at);
                self.fleet.endpoints.remove(at);
                self.vitals.remove(at);
                self.poller.remove(at);
                went += 1;
            }
        }
        // One that was in the pool before has been away: no generation it can have had then.
        let (generation, joined) =
            if self.young { (0, Timestamp(0)) } else { ((self.fleet.version as u32).wrapping_add(1), now) };
        for Member { address, membership } in members {
            if let Some(at) = self.targets.iter().position(|target| target.address == address) {
                changed |= self.mark(at, membership);
            } else if let Some(watch) = self.watch.as_ref().filter(|_| self.targets.len() < MOST_ENDPOINTS) {
                self.targets.push(watch.discovery.target(address));
                self.fleet.endpoints.push(Endpoint { generation, joined, membership, ..Endpoint::new(address) });
                self.vitals.push(Vitals::new(now));
                self.poller.add(now);
                came += 1;
            } else {
                left_out += 1;
            }
        }
        self.young &= came == 0;
        changed |= came + went > 0;
        self.changed |= changed;
        if changed { Listed::Changed { came, went, left_out } } else { Listed::Same }
    }

    /// Whether it is news that this endpoint stands so.
    fn mark(&mut self, at: usize, membership: Membership) -> bool {
        let endpoint = self.fleet.endpoints.get_mut(at);
        endpoint.is_some_and(|endpoint| std::mem::replace(&mut endpoint.membership, membership) != membership)
    }
}
