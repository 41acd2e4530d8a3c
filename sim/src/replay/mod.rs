//! Replays of traces over a simulated fleet: which rule serves the same work best.

mod experiment;
mod report;
mod router;
mod rules;
mod suite;
mod trace;
mod world;

pub use experiment::{Outcome, Plan, Scenario, Trial, Work};
pub use report::{Summary, TPOT_GOAL, TTFT_GOAL, table};
pub use router::{Gauges, Router};
pub use rules::{Fleet, RuleKind, configured};
pub use suite::{Check, Report, Row, Side, Suite, Verdict};
pub use trace::{Agents, Call, Chat, Reasoning, Segment, SharedPrefix, Start, TraceError, Workload, load};
pub use world::{Deal, Served, World};
