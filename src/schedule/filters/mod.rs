//! A file a filter.

mod healthy;
mod lora_capacity;
mod prefix_cache_affinity;

pub(super) use healthy::Healthy;
pub(super) use lora_capacity::LoraCapacity;
pub(super) use prefix_cache_affinity::PrefixCacheAffinity;
