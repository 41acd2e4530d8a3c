//! What happens next.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// Something that happens. Of what happens at the same time the upper kinds come first: requests that reach an engine
/// together are batched together, and gauges are read after a step that ends just then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum What {
    /// The router sees the first token of an answer.
    FirstToken { call: usize },
    /// The router sees an answer end.
    Finished { call: usize },
    /// A call reaches its router.
    Arrived { call: usize },
    /// A call reaches its engine.
    Submitted { call: usize },
    /// A step of this engine ends, or may begin.
    Step { engine: usize },
    /// This engine's gauges are read.
    Scraped { engine: usize },
    /// The workers do what they do every so often.
    Tick,
}

/// Events in the order of time, equal ones in the order of kinds and then of places, so that a replay is the same every
/// time.
#[derive(Default)]
pub(super) struct Queue(BinaryHeap<Reverse<Item>>);

struct Item {
    at: f64,
    what: What,
}

impl Queue {
    pub(super) fn push(&mut self, at: f64, what: What) {
        self.0.push(Reverse(Item { at, what }));
    }

    pub(super) fn pop(&mut self) -> Option<(f64, What)> {
        self.0.pop().map(|Reverse(Item { at, what })| (at, what))
    }
}

impl Ord for Item {
    fn cmp(&self, other: &Self) -> Ordering {
        self.at.total_cmp(&other.at).then_with(|| self.what.cmp(&other.what))
    }
}

impl PartialOrd for Item {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Item {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Item {}
