//! Counters and gauges in the proxy's own statistics.

use super::abi::{self, MetricKind};
use crate::fleet::{Health, Outcome};
use crate::picker::NoPick;

/// Metrics of one pool in one VM. Defined when first used: a configuration that is only being tried must leave no trace.
#[derive(Debug)]
pub(super) struct Metrics {
    /// Ends the names of gauges where there are several pools, since each has its own. Counters are of all together.
    suffix: String,
    defined: Vec<(&'static str, Option<u32>)>,
}

impl Metrics {
    pub(super) fn new(suffix: String) -> Self {
        Self { suffix, defined: Vec::new() }
    }

    /// A request asked for a model that no pool serves.
    pub(super) fn unknown_model(&mut self) {
        self.count("endpoint_picker_unknown_models_total");
    }

    /// A request was placed.
    pub(super) fn picked(&mut self) {
        self.count("endpoint_picker_picks_total");
    }

    /// A prompt was placed where one endpoint may read it and another one generate its answer.
    pub(super) fn disaggregated(&mut self, split: bool) {
        self.count(if split { "endpoint_picker_prefill_decode_total" } else { "endpoint_picker_decode_only_total" });
    }

    /// A request found no endpoint.
    pub(super) fn not_picked(&mut self, why: NoPick, open: bool) {
        self.count(match why {
            NoPick::NoSnapshot => "endpoint_picker_no_snapshot_total",
            NoPick::EmptySubset => "endpoint_picker_empty_subset_total",
            NoPick::AllFilteredOut => "endpoint_picker_all_filtered_out_total",
        });
        self.count(if open { "endpoint_picker_failed_open_total" } else { "endpoint_picker_failed_closed_total" });
    }

    /// A request was served by another endpoint than the one picked.
    pub(super) fn served_elsewhere(&mut self) {
        self.count("endpoint_picker_served_elsewhere_total");
    }

    /// A server failed a request.
    pub(super) fn server_failed(&mut self) {
        self.count("endpoint_picker_server_failures_total");
    }

    /// Endpoints that are failing the requests they get.
    pub(super) fn failing(&mut self, endpoints: u64) {
        self.set("endpoint_picker_endpoints_failing", endpoints);
    }

    /// A server had less of a prompt in its cache than was believed.
    pub(super) fn cache_lost(&mut self) {
        self.count("endpoint_picker_cache_lost_total");
    }

    /// A request brought a session token that no endpoint has.
    pub(super) fn session_unknown(&mut self) {
        self.count("endpoint_picker_sessions_unknown_total");
    }

    /// A request goes to another model than it named.
    pub(super) fn rewritten(&mut self) {
        self.count("endpoint_picker_rewritten_total");
    }

    /// A request did not show which model it names, so no rule could be applied.
    pub(super) fn not_rewritten(&mut self) {
        self.count("endpoint_picker_not_rewritten_total");
    }

    /// A body could not be replaced; it goes on as it came.
    pub(super) fn rewrite_refused(&mut self) {
        self.count("endpoint_picker_rewrites_refused_total");
    }

    /// A server answered a rewritten request with 404: it does not know the target.
    pub(super) fn target_unknown(&mut self) {
        self.count("endpoint_picker_rewrite_targets_unknown_total");
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

    /// The proxy's list of members could not be read.
    pub(super) fn discovery_failed(&mut self) {
        self.count("endpoint_picker_discovery_failed_total");
    }

    /// The fleet as published.
    pub(super) fn fleet(&mut self, health: impl Iterator<Item = Health>) {
        let (mut known, mut unreachable) = (0, 0);
        for health in health {
            known += 1;
            unreachable += u64::from(health == Health::Unreachable);
        }
        self.set("endpoint_picker_endpoints", known);
        self.set("endpoint_picker_endpoints_unreachable", unreachable);
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
        let id = match kind {
            MetricKind::Counter => abi::define_metric(kind, name),
            MetricKind::Gauge => abi::define_metric(kind, &format!("{name}{}", self.suffix)),
        };
        self.defined.push((name, id));
        id
    }
}
