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
    fn follow(&mut self, Listing { mut members, mut left_out }: Listing, now: Timestamp) -> Listed {
        let mut changed = false;
        for (endpoint, target) in self.fleet.endpoints.iter_mut().zip(self.targets.iter().take(self.written)) {
            let at = members.binary_search_by(|member| member.address.cmp(&target.address));
            let membership = at.map_or(Membership::Unlisted, |at| members.remove(at).membership);
            changed |= std::mem::replace(&mut endpoint.membership, membership) != membership;
        }
        let room = MOST_ENDPOINTS.saturating_sub(self.written);
        left_out += members.len().saturating_sub(room);
        members.truncate(room);

        let found = self.targets.get(self.written..).unwrap_or_default();
        let was = |member: &Member| {
            let at = found.binary_search_by(|target| target.address.cmp(&member.address));
            at.ok().map(|at| at + self.written)
        };
        let was: Vec<_> = (0..self.written).map(Some).chain(members.iter().map(was)).collect();
        let came = was.iter().filter(|was| was.is_none()).count();
        let went = self.targets.len() + came - was.len();
        for (member, was) in members.iter().zip(was.iter().skip(self.written)) {
            let endpoint = was.and_then(|was| self.fleet.endpoints.get_mut(was));
            changed |= endpoint.is_some_and(|endpoint| {
                std::mem::replace(&mut endpoint.membership, member.membership) != member.membership
            });
        }
        if came > 0 || went > 0 {
            self.replace(&members, &was, now);
        }
        // The first list of all is news even if it is empty.
        let changed = changed || came > 0 || went > 0 || self.fleet.version == 0;
        self.changed |= changed;
        if changed { Listed::Changed { came, went, left_out } } else { Listed::Same }
    }

    /// Puts `members` behind the written endpoints. Each has what is known of it where it `was`.
    fn replace(&mut self, members: &[Member], was: &[Option<usize>], now: Timestamp) {
        let Some(watch) = &self.watch else { return };
        // One that was in the pool before has been away: no generation it can have had then.
        let (generation, joined) =
            if self.young { (0, Timestamp(0)) } else { ((self.fleet.version as u32).wrapping_add(1), now) };
        let target = |member: &Member| watch.discovery.target(member.address);
        self.targets.truncate(self.written);
        self.targets.extend(members.iter().map(target));
        let endpoint = |(was, member): (&Option<usize>, &Member)| {
            let known = was.and_then(|was| self.fleet.endpoints.get(was).cloned());
            let Member { address, membership } = *member;
            known.unwrap_or_else(|| Endpoint { generation, joined, membership, ..Endpoint::new(address) })
        };
        let found: Vec<_> = was.iter().skip(self.written).zip(members).map(endpoint).collect();
        self.fleet.endpoints.truncate(self.written);
        self.fleet.endpoints.extend(found);
        let vitals = |was: &Option<usize>| was.and_then(|was| self.vitals.get(was).copied());
        self.vitals = was.iter().map(|was| vitals(was).unwrap_or_else(|| Vitals::new(now))).collect();
        self.poller.rearrange(was, now);
        self.young &= members.is_empty();
    }
}
