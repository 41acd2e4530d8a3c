//! Faults, switched while the server runs.

use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

/// What is wrong with a server; the default is nothing. JSON: `{"metrics": {"slow": 200}, "completions": "hang"}`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct FaultSet {
    /// On the metrics page.
    pub metrics: MetricsFault,
    /// On all POST paths of the API.
    pub completions: CompletionsFault,
}

/// A fault of the metrics page.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MetricsFault {
    /// None.
    #[default]
    Ok,
    /// Answers after this many milliseconds.
    Slow(u64),
    /// Answers with this status.
    Status(u16),
    /// Declares the whole length and closes in the middle.
    CutOff,
    /// 302 to another path of this server.
    Redirect,
    /// 200 with a JSON object.
    Json,
    /// 200 with an HTML page.
    Html,
    /// Never answers.
    Hang,
    /// 200 without a byte.
    Empty,
    /// The page followed by 5 MB of samples of no interest.
    Oversized,
}

/// A fault of the API.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CompletionsFault {
    /// None.
    #[default]
    Ok,
    /// Answers with this status; 429 and 503 with `retry-after: 1`.
    Status(u16),
    /// Takes the request and never answers.
    Hang,
    /// Resets the connection after this many tokens, streaming or not.
    Reset(u32),
}

/// Handle to a server's faults; clones share them.
#[derive(Clone, Debug, Default)]
pub struct Faults(Arc<Mutex<FaultSet>>);

impl Faults {
    /// What is wrong at present.
    pub fn get(&self) -> FaultSet {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces all faults.
    pub fn set(&self, faults: FaultSet) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = faults;
    }

    /// Sets the metrics page's fault only.
    pub fn set_metrics(&self, fault: MetricsFault) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).metrics = fault;
    }

    /// Sets the API's fault only.
    pub fn set_completions(&self, fault: CompletionsFault) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).completions = fault;
    }
}
