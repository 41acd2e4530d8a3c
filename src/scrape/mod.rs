//! From a Prometheus text to the signals a router needs.
//!
//! [`read`] goes once over the bytes of a whole body. A line whose name is not wanted costs a look at eight bytes; a
//! wanted one is read where it lies, without allocation. What is not in the text stays `None`: unknown is neither zero nor
//! full. So does a signal of which any part is malformed or cannot be (NaN, infinite, negative, too large): the rest of a
//! sum is not the sum.
//!
//! A body that was cut off can end inside a number and still be well-formed, so whoever fetched it compares lengths and
//! refuses it before it comes here.

mod engine;
mod lora;
mod metric_spec;
mod poller;
mod reading;
mod series;
mod settings;
mod signal;
mod spec;
mod tally;
mod text;

#[cfg(test)]
mod tests;

use std::fmt;

pub use engine::{Engine, UnknownEngine};
pub use lora::{MAX_ADAPTER_NAME, MAX_ADAPTERS};
pub use metric_spec::{MetricSpec, SpecError};
pub use poller::Poller;
pub use reading::{Lora, Reading, Signal};
pub use settings::Settings;
pub use spec::{CustomSignals, EngineSpec};

use tally::Tally;

/// Reads the signals of one server from the complete body of its answer, in time linear in its length.
///
/// A server that describes its metrics (`# TYPE`) but has no sample yet is alive and knows nothing: that is an empty
/// reading. TensorRT-LLM's server is like this until the first request.
///
/// # Errors
/// The text has no metric of `spec`, not even described; it is from something else.
pub fn read(text: &[u8], spec: &EngineSpec) -> Result<Reading, ScrapeError> {
    read_counting(text, spec).map(|(reading, _)| reading)
}

/// [`read`], telling also what the bounds left out.
///
/// # Errors
/// As [`read`].
pub fn read_counting(text: &[u8], spec: &EngineSpec) -> Result<(Reading, Cut), ScrapeError> {
    let mut tally = Tally::new(spec);
    let mut labels = Vec::new();
    let mut known = false;
    for line in text::lines(text) {
        if let Some((family, rest)) = spec.sampled(line) {
            known = true;
            match text::sample(rest, &mut labels) {
                Some(value) => tally.add(family, &labels, value),
                None => tally.spoil(family),
            }
        } else if !known {
            known = text::described(line).is_some_and(|name| spec.family(name).is_some());
        }
    }
    if known { Ok(tally.finish()) } else { Err(ScrapeError::judge(text)) }
}

/// What a text had beyond the bounds; the reading is without it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// Series, of more than 256 of one metric.
    pub series: u32,
    /// Adapters, of more than [`MAX_ADAPTERS`] or with a name longer than [`MAX_ADAPTER_NAME`].
    pub adapters: u32,
}

/// Why a text says nothing of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScrapeError {
    /// There is no text.
    Empty,
    /// The text is JSON.
    Json,
    /// The text is HTML or XML.
    Html,
    /// The text has no metric that is looked for.
    NoKnownFamily,
}

impl ScrapeError {
    /// By the content: servers label Prometheus texts as JSON and the other way round.
    fn judge(text: &[u8]) -> Self {
        match text.trim_ascii_start().first() {
            None => Self::Empty,
            Some(b'{' | b'[') => Self::Json,
            Some(b'<') => Self::Html,
            Some(_) => Self::NoKnownFamily,
        }
    }
}

impl fmt::Display for ScrapeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "the metrics are empty",
            Self::Json => "the metrics are JSON, not a Prometheus text; trtllm-serve has one at /prometheus/metrics",
            Self::Html => "the metrics are a web page, not a Prometheus text; is the path right?",
            Self::NoKnownFamily => "the metrics have no name that is known of this engine; is the engine right?",
        })
    }
}

impl std::error::Error for ScrapeError {}
