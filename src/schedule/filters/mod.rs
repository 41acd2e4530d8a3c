//! A file a filter.

mod decode;
mod header_based_testing;
mod healthy;
mod label_selector;
mod lora_capacity;
mod prefill;
mod prefix_cache_affinity;
mod session_affinity;
mod slo_headroom_tier;
mod utilization;

pub(super) use decode::Decode;
pub(super) use header_based_testing::HeaderBasedTesting;
pub(super) use healthy::Healthy;
pub(super) use label_selector::LabelSelector;
pub(super) use lora_capacity::LoraCapacity;
pub(super) use prefill::Prefill;
pub(super) use prefix_cache_affinity::PrefixCacheAffinity;
pub(super) use slo_headroom_tier::SloHeadroomTier;
pub(super) use utilization::Utilization;

#[cfg(test)]
mod testing {
    use std::collections::BTreeMap;

    use crate::schedule::{Candidate, Filter, Request, Rng};

    pub(super) type Labels = BTreeMap<String, String>;

    pub(super) fn labels(labels: &[(&str, &str)]) -> Labels {
        labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    /// One endpoint of each role, and last one without.
    pub(super) fn roles() -> Vec<Labels> {
        let roles =
            ["prefill", "decode", "encode-prefill", "prefill-decode", "both", "encode", "encode-prefill-decode"];
        roles.iter().map(|role| labels(&[("llm-d.ai/role", role)])).chain([labels(&[])]).collect()
    }

    /// The places of those that stay, of endpoints with these labels.
    pub(super) fn kept(filter: &impl Filter, servers: &[Labels]) -> Vec<usize> {
        let candidate = |(index, labels)| Candidate { index, labels, ..Candidate::named("10.0.0.1:8000") };
        let mut candidates = servers.iter().enumerate().map(candidate).collect();
        filter.filter(&Request::default(), &mut candidates, &mut Rng::new(1));
        candidates.into_iter().map(|candidate| candidate.index).collect()
    }
}
