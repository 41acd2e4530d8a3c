//! What came of a request, for what it says of the server.

use super::Picker;
use crate::clock::Timestamp;
use crate::ledger::Entry;
use crate::outcome::Outcome;

/// Why a retry left a server is not told. It may have been busy, which is no failure.
const MOVED: f32 = 0.5;
/// An answer that was cut off had counted as a success when it began.
const CUT_OFF: f32 = 2.0;

impl Picker {
    /// An answer began, or the proxy gave one in place of a server. `served` is who was tried last; empty if it is the
    /// one that was picked, or the proxy does not tell. To be called before [`Picker::moved`].
    pub fn answered(&mut self, entry: &Entry, served: &[u8], outcome: Outcome, now: impl Fn() -> Timestamp) {
        if !self.config.pool.passive_health {
            return;
        }
        let picked = entry.endpoint();
        let told = Some(served).filter(|served| !served.is_empty());
        let other = told.and_then(|served| self.pool.ids.get(self.pool.position(served)?)).copied();
        let last = other.unwrap_or(picked);
        let stranger = other.is_none() && told.is_some();
        if last != picked || stranger {
            self.learner.observe_failure(picked, MOVED, now());
        }
        match outcome {
            _ if stranger => {}
            Outcome::Served if self.learner.is_troubled(last) => self.learner.observe_success(last, now()),
            Outcome::Failed => self.learner.observe_failure(last, 1.0, now()),
            Outcome::Served | Outcome::Neutral => {}
        }
    }

    /// The answer did not come to its end.
    pub fn cut_off(&mut self, entry: &Entry, outcome: Outcome, now: Timestamp) {
        if self.config.pool.passive_health && outcome == Outcome::Failed {
            self.learner.observe_failure(entry.endpoint(), CUT_OFF, now);
        }
    }
}
