//! What is compared on what.

use std::fmt;
use std::time::Duration;

use endpoint_picker::config::ConfigError;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::engine;
use crate::replay::report::Summary;
use crate::replay::rules::{Fleet, RuleKind};
use crate::replay::trace::{Agents, Chat, Reasoning, SharedPrefix, Workload};
use crate::replay::world::World;

/// Work and the fleet that does it.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// For tables.
    pub name: String,
    /// The work.
    pub work: Work,
    /// How many times as fast as recorded calls arrive.
    pub speedup: f64,
    /// The fleet.
    pub engines: Vec<engine::Config>,
    /// Configuration of the picker, where that is tried; servers and ledger are overwritten.
    pub config: Map<String, Value>,
}

/// Where calls come from.
#[derive(Clone, Debug)]
pub enum Work {
    /// A recorded trace.
    Trace(Workload),
    /// Long system prompts.
    SharedPrefix(SharedPrefix),
    /// Conversations.
    Chat(Chat),
    /// Long contexts in a closed loop.
    Agents(Agents),
    /// Long answers in a closed loop.
    Reasoning(Reasoning),
}

/// A rule and how it is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Trial {
    /// The rule.
    pub rule: RuleKind,
    /// Between two scrapes of an engine.
    #[serde(serialize_with = "seconds")]
    pub scrape: Duration,
    /// Workers of the proxy.
    pub workers: usize,
    /// Whether they share what they know.
    pub shared: bool,
}

impl Trial {
    /// Between scrapes unless said otherwise, as in the product.
    pub const SCRAPE: Duration = Duration::from_millis(100);

    /// One worker.
    pub fn of(rule: RuleKind) -> Self {
        Self { rule, scrape: Self::SCRAPE, workers: 1, shared: true }
    }
}

impl Scenario {
    /// `engines` engines of the profile [`engine::Config::qwen3_32b_tp2`], with caches of `kv_tokens`.
    pub fn new(name: &str, work: Work, engines: usize, kv_tokens: u32) -> Self {
        let config = engine::Config::qwen3_32b_tp2().with_kv_tokens(kv_tokens);
        Self { name: name.into(), work, speedup: 1.0, engines: vec![config; engines], config: Map::new() }
    }

    /// The same fleet, its first `count` engines at `speed` times their speed.
    pub fn slowed(mut self, count: usize, speed: f64) -> Self {
        for engine in self.engines.iter_mut().take(count) {
            engine.step_time = engine.step_time.at_speed(speed);
        }
        self
    }

    /// Runs `trial`; equal arguments give equal results. Errors: a configuration of the picker that it refuses.
    pub fn run(&self, trial: &Trial, seed: u64) -> Result<Summary, ConfigError> {
        let workload = self.workload(seed);
        let world = World { scrape: trial.scrape.as_secs_f64(), ..World::new(self.engines.clone(), seed) };
        let fleet = Fleet {
            workers: trial.workers,
            shared: trial.shared,
            config: self.config.clone(),
            ..Fleet::of(&self.engines, seed)
        };
        let served = world.replay(&workload, &mut trial.rule.routers(&fleet)?);
        Ok(Summary::of(self.engines.len(), &served))
    }

    fn workload(&self, seed: u64) -> Workload {
        let workload = match &self.work {
            Work::Trace(trace) => trace.clone().spread(seed),
            Work::SharedPrefix(generator) => generator.generate(seed),
            Work::Chat(generator) => generator.generate(seed),
            Work::Agents(generator) => generator.generate(seed),
            Work::Reasoning(generator) => generator.generate(seed),
        };
        workload.sped_up(self.speedup)
    }
}

impl fmt::Display for Trial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rule.fmt(f)?;
        if self.scrape != Self::SCRAPE {
            write!(f, "@{}", humantime::format_duration(self.scrape))?;
        }
        if self.workers > 1 {
            write!(f, ", {} workers {}", self.workers, if self.shared { "sharing" } else { "alone" })?;
        }
        Ok(())
    }
}

fn seconds<S: serde::Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64())
}
