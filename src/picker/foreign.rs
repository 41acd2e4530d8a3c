//! What direct clients and other gateways have at an endpoint.

use crate::clock::Timestamp;
use crate::cost::Load;
use crate::fleet::Endpoint;
use crate::ledger::Line;
use crate::schedule::Candidate;
use crate::scrape::Signal;

/// What the server told less what this proxy had there then. To take the greater of the two instead would count what was
/// sent since the scrape twice. And so it is compared once only, when the scrape is new.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Foreign {
    /// Requests that run and that wait, as told and when.
    counts: [Option<Signal<u32>>; 2],
    kv_usage: Option<Signal<f64>>,
    pub(super) requests: Option<u32>,
    waiting: Option<u32>,
    kv_tokens: Option<u32>,
}

/// Before the first comparison.
pub(super) static NOTHING: Foreign =
    Foreign { counts: [None; 2], kv_usage: None, requests: None, waiting: None, kv_tokens: None };

impl Foreign {
    /// `told` is what the server told lately, `own` what this proxy has there now.
    pub(super) fn renewed(self, told: &Candidate<'_>, endpoint: &Endpoint, own: &Line) -> Self {
        let (counts, kv_usage) = ([endpoint.signals.running, endpoint.signals.waiting], endpoint.signals.kv_usage);
        if (counts, kv_usage) == (self.counts, self.kv_usage) {
            return self;
        }
        let requests = told.running.zip(told.waiting).map(|(running, waiting)| running.saturating_add(waiting));
        let used = told.kv_usage.zip(endpoint.signals.capacity_tokens());
        Self {
            counts,
            kv_usage,
            requests: requests.map(|requests| requests.saturating_sub(own.requests)),
            waiting: told.waiting.map(|waiting| waiting.saturating_sub(own.prefilling)),
            kv_tokens: used.map(|(share, capacity)| ((share * capacity as f64) as u32).saturating_sub(own.kv_tokens)),
        }
    }

    /// All that is there. What `told` does not say any more is too old for a comparison too. `mean_prefill_seconds` is for
    /// the requests of others that wait.
    pub(super) fn load(
        &self,
        told: &Candidate<'_>,
        own: &Line,
        endpoint: &Endpoint,
        mean_prefill_seconds: Option<f64>,
        now: Timestamp,
    ) -> Load {
        let capacity = endpoint.signals.capacity_tokens();
        Load {
            wait_seconds: own.wait_seconds(now),
            requests: own.requests,
            prefilling: own.prefilling,
            context_tokens: own.context_tokens,
            kv_tokens: own.kv_tokens,
            foreign_requests: self.requests.filter(|_| told.running.is_some() && told.waiting.is_some()),
            foreign_waiting: self.waiting.filter(|_| told.waiting.is_some()),
            foreign_kv_tokens: self.kv_tokens.filter(|_| told.kv_usage.is_some()),
            capacity_tokens: capacity.map(|tokens| u32::try_from(tokens).unwrap_or(u32::MAX)),
            mean_prefill_seconds,
        }
    }
}
