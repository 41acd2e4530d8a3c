//! What stands around the proxy.

mod metrics_text;
mod picker_service;
mod upstream;

pub(crate) use metrics_text::MetricsText;
pub(crate) use picker_service::PickerService;
pub(crate) use upstream::Upstream;
