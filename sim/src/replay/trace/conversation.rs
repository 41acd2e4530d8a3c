//! A conversation as it grows: each prompt is the one before, its answer, and something new.

use super::{Call, Segment, Start};

pub(super) struct Conversation<'a> {
    calls: &'a mut Vec<Call>,
    segments: Vec<Segment>,
    /// Segments up to the end of the first user message.
    opening: usize,
    last: Option<usize>,
    begins: Start,
}

impl<'a> Conversation<'a> {
    /// One that begins with `opening`, whose last segment is the first user message.
    pub(super) fn new(calls: &'a mut Vec<Call>, begins: Start, opening: Vec<Segment>) -> Self {
        Self { calls, opening: opening.len(), segments: opening, last: None, begins }
    }

    /// Asks what has been said so far; `pause` seconds after the last answer, if there was one. Returns the call's place.
    pub(super) fn ask(&mut self, output: u32, pause: f64) -> usize {
        let place = self.calls.len();
        let start = self.last.map_or(self.begins, |call| Start::After { call, pause });
        // Texts that nobody else has are named by the call they came with, above the names of shared ones.
        let answer = unique(place, 0);
        self.calls.push(Call::new(start, &self.segments, self.opening, output, Some(answer)));
        self.segments.push(Segment { id: answer, tokens: output });
        self.last = Some(place);
        place
    }

    /// Adds a message of the user or of a tool.
    pub(super) fn say(&mut self, tokens: u32) {
        self.segments.push(Segment { id: unique(self.calls.len(), 1), tokens });
    }
}

/// Name of a text that belongs to one call.
pub(super) fn unique(call: usize, part: u64) -> u64 {
    1 << 32 | (call as u64) << 2 | part
}
