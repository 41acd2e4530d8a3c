//! A file a filter.

mod healthy;
mod lora_capacity;

pub(super) use healthy::Healthy;
pub(super) use lora_capacity::LoraCapacity;
