//! What the suite asks for.

use super::row::{Check, Row};
use super::scenarios::*;
use crate::replay::experiment::{Outcome, Trial};
use crate::replay::report::Summary;

type Checks = Option<Vec<Check>>;

/// Outcomes to look things up in.
pub(super) struct Results<'a> {
    pub(super) outcomes: &'a [Outcome],
    pub(super) missing: &'a [Missing],
}

impl Results<'_> {
    /// The table.
    pub(super) fn rows(&self) -> Vec<Row> {
        let mut rows = vec![self.row(CONVERSATION, CONVERSATION, |r| r.conversation())];
        for scenario in [CONVERSATION_SLOW, CONVERSATION_FAST, SYNTHETIC] {
            rows.push(self.row(scenario, scenario, |r| r.ahead(scenario)));
        }
        for scenario in [SHARED_PREFIX, CHAT, AGENTS, REASONING] {
            rows.push(self.row(scenario, scenario, |r| r.not_behind(scenario)));
        }
        rows.push(self.row(CONVERSATION, "scrape interval 50 ms to 5 s", |r| r.scrape_interval()));
        for scenario in [CONVERSATION, SHARED_PREFIX, CHAT, AGENTS] {
            let name = format!("{WORKERS} workers sharing, {scenario}");
            rows.push(self.row(scenario, &name, |r| r.sharing(scenario)));
        }
        let name = format!("{WORKERS} workers alone, {SHARED_PREFIX}");
        rows.push(self.row(SHARED_PREFIX, &name, |r| r.alone()));
        // A tenth above what the rule's prototype came to.
        for (scenario, e2e) in [(MIXED_CHAT, 5.76), (MIXED_PREFIX, 45.1)] {
            rows.push(self.row(scenario, scenario, |r| r.mixed(scenario, 1.1 * e2e)));
        }
        rows.push(self.row(ONE_BEGINNING, ONE_BEGINNING, |r| r.one_beginning()));
        rows
    }

    fn row(&self, scenario: &str, name: &str, checks: impl Fn(&Self) -> Checks) -> Row {
        let missing = self.missing.iter().find(|(name, _)| *name == scenario).map(|(_, reason)| reason.clone());
        match checks(self) {
            Some(checks) => Row { name: name.into(), checks, skipped: None },
            None => Row { name: name.into(), checks: vec![], skipped: missing.or(Some("not replayed".into())) },
        }
    }

    fn conversation(&self) -> Checks {
        let ours = self.ours(CONVERSATION)?;
        let (e2e, goodput) = (self.lowest(CONVERSATION, |s| s.e2e_mean)?, -self.lowest(CONVERSATION, |s| -s.goodput)?);
        Some(vec![
            Check::at_most("TTFT", ours.ttft_mean, 0.86),
            Check::at_most("TTFT p99", ours.ttft_p99, 9.0),
            Check::at_most("E2E", ours.e2e_mean, e2e.min(15.5)),
            Check::at_least("goodput", ours.goodput, 0.72),
            Check::above("goodput against the best other", ours.goodput, goodput),
        ])
    }

    fn ahead(&self, scenario: &str) -> Checks {
        let ours = self.ours(scenario)?;
        Some(vec![
            Check::at_most("E2E", ours.e2e_mean, 0.9 * self.lowest(scenario, |s| s.e2e_mean)?),
            Check::at_most("TTFT", ours.ttft_mean, 1.03 * self.lowest(scenario, |s| s.ttft_mean)?),
        ])
    }

    fn not_behind(&self, scenario: &str) -> Checks {
        let ours = self.ours(scenario)?;
        let mut checks = vec![Check::at_most("E2E", ours.e2e_mean, 1.03 * self.lowest(scenario, |s| s.e2e_mean)?)];
        if scenario == REASONING {
            checks.push(Check::at_most("preemptions", ours.preemptions, 0.0));
        }
        Some(checks)
    }

    fn scrape_interval(&self) -> Checks {
        let ttft = SCRAPES
            .map(|scrape| self.of(CONVERSATION, &Trial { scrape, ..Trial::of(OURS) }).map(|summary| summary.ttft_mean));
        let usual = self.ours(CONVERSATION)?.ttft_mean;
        let ttft: Vec<_> = ttft.into_iter().flatten().chain([usual]).collect();
        let (least, most) = ttft.iter().fold((f64::INFINITY, 0f64), |(least, most), t| (least.min(*t), most.max(*t)));
        Some(vec![Check::at_most("highest TTFT", most, 1.05 * least)])
    }

    fn sharing(&self, scenario: &str) -> Checks {
        let one = self.ours(scenario)?;
        let many = self.of(scenario, &Trial { workers: WORKERS, ..Trial::of(OURS) })?;
        Some(vec![
            Check::at_most("TTFT", many.ttft_mean, 1.03 * one.ttft_mean),
            Check::at_most("E2E", many.e2e_mean, 1.03 * one.e2e_mean),
            Check::at_least("hits", many.hit_rate, 0.97 * one.hit_rate),
        ])
    }

    fn alone(&self) -> Checks {
        let alone = self.of(SHARED_PREFIX, &Trial { workers: WORKERS, shared: false, ..Trial::of(OURS) })?;
        Some(vec![Check::at_most("TTFT", alone.ttft_mean, 0.15)])
    }

    fn mixed(&self, scenario: &str, bound: f64) -> Checks {
        Some(vec![Check::at_most("E2E", self.ours(scenario)?.e2e_mean, bound)])
    }

    fn one_beginning(&self) -> Checks {
        let alone = self.of(ONE_BEGINNING, &Trial { workers: WORKERS, shared: false, ..Trial::of(OURS) })?;
        Some(vec![
            Check::at_most("busiest engine", self.ours(ONE_BEGINNING)?.busiest, 1.5),
            Check::at_most("alone", alone.busiest, 1.5),
        ])
    }

    fn ours(&self, scenario: &str) -> Option<&Summary> {
        self.of(scenario, &Trial::of(OURS))
    }

    fn of(&self, scenario: &str, trial: &Trial) -> Option<&Summary> {
        let found = self.outcomes.iter().find(|outcome| outcome.scenario == scenario && outcome.trial == *trial);
        found.map(|outcome| &outcome.mean)
    }

    /// The lowest of a figure among the other rules.
    fn lowest(&self, scenario: &str, figure: impl Fn(&Summary) -> f64) -> Option<f64> {
        let others = self.outcomes.iter().filter(|outcome| outcome.scenario == scenario && outcome.trial.rule != OURS);
        others.map(|outcome| figure(&outcome.mean)).min_by(f64::total_cmp)
    }
}
