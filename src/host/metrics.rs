//! Counters and gauges in the proxy's own statistics.

use super::abi::{self, MetricKind};
use crate::fleet::{Endpoint, Health, Outcome};
use crate::picker::NoPick;
use crate::saturation::Survey;

/// Metrics of one VM. Defined when first used: a configuration that is only being tried must leave no trace.
#[derive(Debug, Default)]
pub(super) struct Metrics {
    defined: Vec<(&'static str, Option<u32>)>,
}

impl Metrics {
    /// A request was placed.
    pub(super) fn picked(&mut self) {
        self.count("endpoint_picker_picks_total");
    }

    /// A request found no endpoint, or was shed.
    pub(super) fn not_picked(&mut self, why: NoPick, open: bool) {
        self.count(match why {
            NoPick::Saturated => return self.count("endpoint_picker_shed_total"),
            NoPick::NoSnapshot => "endpoint_picker_no_snapshot_total",
            NoPick::AllFilteredOut => "endpoint_picker_all_filtered_out_total",
        });
        self.count(if open { "endpoint_picker_failed_open_total" } else { "endpoint_picker_failed_closed_total" });
    }

    /// A request was served by another endpoint than the one picked.
    pub(super) fn served_elsewhere(&mut self) {
        self.count("endpoint_picker_served_elsewhere_total");
    }

    /// A server had less of a prompt in its cache than was believed.
    pub(super) fn cache_lost(&mut self) {
        self.count("endpoint_picker_cache_lost_total");
    }

    /// The destination could not be set any more; the proxy's own policy chooses.
    pub(super) fn too_late(&mut self) {
        self.count("endpoint_picker_destination_refused_total");
    }

    /// A scrape ended.
    pub(super) fn scraped(&mut self, outcome: &Outcome) {
        self.count(match outcome {
            Outcome::Read => "endpoint_picker_scrapes_read_total",
            Outcome::NoMetrics(_) => "endpoint_picker_scrapes_without_metrics_total",
            Outcome::CutOff => "endpoint_picker_scrapes_cut_off_total",
            Outcome::WrongPath(_) => "endpoint_picker_scrapes_wrong_path_total",
            Outcome::Failed(_) => "endpoint_picker_scrapes_failed_total",
            Outcome::TimedOut => "endpoint_picker_scrapes_timed_out_total",
            Outcome::Refused => "endpoint_picker_scrapes_refused_total",
        });
    }

    /// The fleet as published.
    pub(super) fn fleet(&mut self, fleet: &[Endpoint]) {
        let unreachable = fleet.iter().filter(|endpoint| endpoint.health == Health::Unreachable).count();
        self.set("endpoint_picker_endpoints", fleet.len() as u64);
        self.set("endpoint_picker_endpoints_unreachable", unreachable as u64);
    }

    /// How full the pool is, in thousandths, and whether any of its servers has told its load lately.
    pub(super) fn saturation(&mut self, survey: &Survey, ledger_alone: bool) {
        // Rounded down: what reads 1000 is full.
        self.set("endpoint_picker_saturation_permille", (survey.pool * 1000.0) as u64);
        self.set("endpoint_picker_saturation_hottest_permille", (survey.hottest * 1000.0) as u64);
        self.set("endpoint_picker_endpoints_stale", survey.stale);
        self.set("endpoint_picker_ledger_alone", ledger_alone.into());
    }

    /// Requests of all workers in flight, as the ledger has them.
    pub(super) fn in_flight(&mut self, requests: u64) {
        self.set("endpoint_picker_requests_in_flight", requests);
    }

    /// The scraper of this VM took over.
    pub(super) fn took_over(&mut self) {
        self.count("endpoint_picker_scraper_takeovers_total");
    }

    fn count(&mut self, name: &'static str) {
        if let Some(metric) = self.metric(MetricKind::Counter, name) {
            abi::increment(metric, 1);
        }
    }

    fn set(&mut self, name: &'static str, value: u64) {
        if let Some(metric) = self.metric(MetricKind::Gauge, name) {
            abi::record(metric, value);
        }
    }

    fn metric(&mut self, kind: MetricKind, name: &'static str) -> Option<u32> {
        if let Some((_, id)) = self.defined.iter().find(|(known, _)| *known == name) {
            return *id;
        }
        let id = abi::define_metric(kind, name);
        self.defined.push((name, id));
        id
    }
}
