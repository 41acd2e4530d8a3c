//! What came of a request, for what it says of the server.

use super::Picker;
use crate::clock::Timestamp;
use crate::id::EndpointId;
use crate::ledger::Entry;
use crate::outcome::Outcome;

/// Why a retry left a server is not told. It may have been busy, which is no failure.
const MOVED: f32 = 0.5;
/// Of a failure before the first token, at the endpoint that generates what another one reads. Either may be to blame, and the
/// one that reads gets all of it. A generator that is to blame fails with all readers, and so gets there, too; one that is not
/// answers with other readers in between.
const BESIDE_READER: f32 = 0.5;
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
        let last = match self.pool.position(served).and_then(|at| self.pool.ids.get(at)) {
            Some(last) => *last,
            None if served.is_empty() => picked,
            // One that is in no list, such as a sidecar, or a server that is not found yet, says nothing of any other.
            None => return,
        };
        if last != picked {
            self.learner.observe_suspicion(picked, MOVED, now());
        }
        match outcome {
            Outcome::Served => {
                let reader = reader_of(entry).filter(|reader| *reader != last);
                for endpoint in [Some(last), reader].into_iter().flatten() {
                    if self.learner.is_troubled(endpoint) {
                        self.learner.observe_success(endpoint, now());
                    }
                }
            }
            Outcome::Failed => self.failed(entry, last, 1.0, now()),
            Outcome::Neutral => {}
        }
    }

    /// The answer did not come to its end.
    pub fn cut_off(&mut self, entry: &Entry, outcome: Outcome, now: Timestamp) {
        if self.config.pool.passive_health && outcome == Outcome::Failed {
            self.failed(entry, entry.endpoint(), CUT_OFF, now);
        }
    }

    fn failed(&mut self, entry: &Entry, at: EndpointId, weight: f32, now: Timestamp) {
        let reader = reader_of(entry);
        if let Some(reader) = reader {
            self.learner.observe_failure(reader, weight, now);
        }
        self.learner.observe_failure(at, if reader.is_some() { BESIDE_READER * weight } else { weight }, now);
    }
}

/// Who reads its prompt, if that is another one and it has no first token.
fn reader_of(entry: &Entry) -> Option<EndpointId> {
    Some(entry.reader()).filter(|reader| *reader != entry.endpoint())
}
