//! The table of a run.

use std::fmt;

use super::{Case, ENDPOINTS};
use crate::statistics::Middle;
use crate::table::markdown;

/// Most microseconds that a decision may take, by endpoints.
const LIMITS: [(usize, f64); 2] = [(32, 60.0), (1000, 1000.0)];

pub(super) struct Report<'a>(pub(super) &'a [(Case, Middle)]);

impl Report<'_> {
    fn row(&self, endpoints: usize) -> Vec<String> {
        let took = |shared, reads| {
            let case = Case { endpoints, shared, reads };
            self.0.iter().find(|(measured, _)| *measured == case).map(|(_, middle)| *middle).unwrap_or_default()
        };
        let shared = took(true, false);
        let limit = LIMITS
            .into_iter()
            .find(|(of, _)| *of == endpoints)
            .map(|(_, limit)| format!("{limit:.0}: {}", if shared.median <= limit { "holds" } else { "MISSES" }));
        vec![
            endpoints.to_string(),
            took(false, false).to_string(),
            shared.to_string(),
            took(true, true).to_string(),
            limit.unwrap_or_default(),
        ]
    }
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "A decision on a prompt of 128 blocks in Envoy's V8, median [quartiles]; microseconds.\n")?;
        let header = ["endpoints", "without host calls", "with shared data", "and reading 32 KB of prompt", "limit"];
        write!(f, "{}", markdown(&header, ENDPOINTS.map(|endpoints| self.row(endpoints)), 0))
    }
}
