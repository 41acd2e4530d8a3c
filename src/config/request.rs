//! How request bodies are read.

use super::Whole;
use serde::Deserialize;

/// How request bodies are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Bytes of a body that are read before a decision, 1 KiB to 16 MiB.
    pub max_body_bytes: usize,
}

/// How request bodies are read.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(super) struct WrittenRequest {
    /// How many bytes of a body are held and read before an endpoint is picked. A longer body is decided on what was
    /// read and passes whole. Must be below the buffer limit of the proxy (Envoy: `per_connection_buffer_limit_bytes`,
    /// 1 MiB by default), which answers 413 beyond it.
    max_body_bytes: Whole<1024, 16_777_216>,
}

impl Default for WrittenRequest {
    fn default() -> Self {
        Self { max_body_bytes: Whole::of(256 << 10) }
    }
}

impl WrittenRequest {
    pub(super) fn resolve(self) -> Request {
        Request { max_body_bytes: self.max_body_bytes.get() as usize }
    }
}
