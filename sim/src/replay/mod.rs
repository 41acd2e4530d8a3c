//! Replays of traces over a simulated fleet: which rule serves the same work best.

pub mod report;
mod router;
mod rules;
mod trace;
mod world;

pub use report::Summary;
pub use router::{Gauges, Router};
pub use rules::{Fleet, RuleKind};
pub use trace::*;
pub use world::*;
