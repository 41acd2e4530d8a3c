//! A file a filter.

mod healthy;
mod lora_capacity;
mod prefix_cache_affinity;
mod saturation;

pub(super) use healthy::Healthy;
pub(super) use lora_capacity::LoraCapacity;
pub(super) use prefix_cache_affinity::PrefixCacheAffinity;
pub(super) use saturation::NotFull;
