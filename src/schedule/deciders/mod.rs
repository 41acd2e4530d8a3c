//! A file a decider.

mod always;
mod prefix_based;

pub(super) use always::Always;
pub(super) use prefix_based::PrefixBased;
