//! The suite: what the picker promises on known work, measured against the other rules on the same work.

mod row;
mod rows;
mod scenarios;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use endpoint_picker::config::ConfigError;
use serde::Serialize;

use super::experiment::{Outcome, Plan};
use super::report::{self, markdown};
use rows::Results;

pub use row::{Check, Row, Side, Verdict};

/// How to run it.
#[derive(Clone, Debug)]
pub struct Suite {
    /// Where the Mooncake traces are; rows that need them are skipped where they are not.
    pub traces: PathBuf,
    /// One seed, and only the strongest of the other rules.
    pub quick: bool,
    /// Threads.
    pub threads: usize,
}

/// What it came to.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The promises.
    pub rows: Vec<Row>,
    /// Everything that was replayed.
    pub outcomes: Vec<Outcome>,
}

impl Suite {
    /// Replays everything, telling `progress` how many of how many replays are done.
    /// Errors: a configuration of the picker that it refuses, which would be a fault of the suite.
    pub fn run(&self, progress: impl Fn(usize, usize) + Sync) -> Result<Report, ConfigError> {
        let (scenarios, missing) = scenarios::scenarios(&self.traces);
        let trials = scenarios.iter().enumerate().flat_map(|(place, scenario)| {
            scenarios::trials(&scenario.name, self.quick).into_iter().map(move |trial| (place, trial))
        });
        let trials = trials.collect();
        let plan = Plan { scenarios, trials, seeds: if self.quick { 1 } else { 3 }, threads: self.threads };
        let outcomes = plan.run(progress)?;
        let rows = Results { outcomes: &outcomes, missing: &missing }.rows();
        Ok(Report { rows, outcomes })
    }
}

impl Report {
    /// Whether no row failed.
    pub fn holds(&self) -> bool {
        self.rows.iter().all(|row| row.verdict() != Verdict::Failed)
    }

    /// A table for each scenario, then the table of promises.
    pub fn markdown(&self) -> String {
        let mut text = String::new();
        for outcomes in self.outcomes.chunk_by(|a, b| a.scenario == b.scenario) {
            let name = outcomes.first().map_or("", |outcome| &outcome.scenario);
            text.push_str(&format!("### {name}\n\n{}\n", report::table(outcomes)));
        }
        let mut rows = vec![vec!["row".into(), "verdict".into(), "measured".into()]];
        rows.extend(self.rows.iter().map(|row| vec![row.name.clone(), row.verdict().to_string(), row.to_string()]));
        text + &format!("### {}\n\n{}", scenarios::OURS, markdown(&rows, 3))
    }
}
