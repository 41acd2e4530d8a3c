//! Many replays on a few threads.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use endpoint_picker::config::ConfigError;
use serde::Serialize;

use super::scenario::{Scenario, Trial};
use crate::replay::report::Summary;

/// Trials of scenarios, each over some seeds.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The scenarios.
    pub scenarios: Vec<Scenario>,
    /// Place of a scenario, and what is tried on it.
    pub trials: Vec<(usize, Trial)>,
    /// Seeds 1 to this many.
    pub seeds: u64,
    /// Threads; results do not depend on it.
    pub threads: usize,
}

/// What a trial came to.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// Name of the scenario.
    pub scenario: String,
    /// What was tried.
    #[serde(flatten)]
    pub trial: Trial,
    /// Mean over the seeds.
    pub mean: Summary,
    /// Each seed.
    pub seeds: Vec<Summary>,
}

impl Plan {
    /// Runs everything, telling `progress` how many of how many replays are done. Outcomes in the order of the trials.
    /// Errors: a configuration of the picker that it refuses.
    pub fn run(&self, progress: impl Fn(usize, usize) + Sync) -> Result<Vec<Outcome>, ConfigError> {
        let jobs: Vec<_> =
            self.trials.iter().flat_map(|trial| (1..=self.seeds).map(move |seed| (trial, seed))).collect();
        let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        std::thread::scope(|scope| {
            for _ in 0..self.threads.max(1) {
                scope.spawn(|| {
                    while let Some(((scenario, trial), seed)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let Some(found) = self.scenarios.get(*scenario) else { continue };
                        let summary = found.run(trial, *seed);
                        let Ok(mut done) = done.lock() else { return };
                        done.push(((*scenario, *trial), *seed, summary));
                        progress(done.len(), jobs.len());
                    }
                });
            }
        });
        let done = done.into_inner().unwrap_or_default();
        let done = done.into_iter().map(|(job, seed, summary)| Ok((job, seed, summary?)));
        let done: Vec<_> = done.collect::<Result<_, ConfigError>>()?;
        let outcomes = self.trials.iter().filter_map(|job @ (scenario, trial)| {
            let mut seeds: Vec<_> = done.iter().filter(|(done, ..)| done == job).collect();
            seeds.sort_by_key(|(_, seed, _)| *seed);
            let seeds: Vec<_> = seeds.into_iter().map(|(.., summary)| *summary).collect();
            let scenario = self.scenarios.get(*scenario)?.name.clone();
            Some(Outcome { scenario, trial: *trial, mean: Summary::mean(&seeds), seeds })
        });
        Ok(outcomes.collect())
    }
}
