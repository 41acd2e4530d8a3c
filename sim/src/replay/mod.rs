//! Replays of traces over a simulated fleet: which rule serves the same work best.
//!
//! A [`Workload`], recorded or generated, is served in virtual time by a [`World`]: engines of the kind [`engine`] models, a
//! network, scrapes, and the workers of a proxy that place each call by one of the rules of [`RuleKind`]. One of these is
//! the picker itself, the code that runs inside the proxy, with any configuration; the others are what the field
//! publishes. A [`Summary`] says what came of it.
//!
//! # What to trust
//!
//! - Equal arguments give equal results, to the last digit. Seeds draw generated calls, arrivals within a recorded clock
//!   tick, scrape phases and ties.
//! - Differences between rules on the same work. Absolute seconds are those of the modelled engine.
//! - Routers know the number of prompt tokens exactly; real ones estimate it. They are not told how long answers will be.
//! - Not in the model: clients that go away, retries, adapters, prefill and decode on different engines, speculative
//!   decoding, queues inside the router. Dynamo and llm-d have such queues and, with engines that send events, exact
//!   knowledge of caches; here every rule has the same approximate index.
//! - The engine's gauges are late as on a real vLLM: an arrival shows at the end of the step after the one it came in.
//!   Rules that live by gauges suffer from it more than in models whose gauges are exact.
//!
//! [`engine`]: crate::engine

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
pub use rules::{Cached, Fleet, RuleKind, configured};
pub use suite::{Check, Report, Row, Side, Suite, Verdict};
pub use trace::{Agents, Call, Chat, Reasoning, Segment, SharedPrefix, Start, TraceError, Workload, load};
pub use world::{Deal, Served, World};
