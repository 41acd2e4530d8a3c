//! Mooncake's traces: a JSON object a line.
//!
//! `timestamp` in ms, `input_length` and `output_length` in tokens, `hash_ids` one id per 512 tokens of the prompt, the
//! last of them possibly short. Equal ids are equal blocks with equal blocks before them. Other fields are ignored.

use std::io::BufRead;

use serde::Deserialize;

use super::{Call, Segment, Start, TraceError, Workload};

/// Tokens that an id stands for.
const SPAN: u32 = 512;

/// Where conversations of these traces begin to differ is not recorded. Nearly all share their first block, so what
/// tells one from another is in the second.
const OPENING: usize = 2;

#[derive(Deserialize)]
struct Line {
    timestamp: f64,
    input_length: u32,
    output_length: u32,
    #[serde(default)]
    hash_ids: Vec<u32>,
}

pub(super) fn read(text: impl BufRead) -> Result<Workload, TraceError> {
    let mut calls = Vec::new();
    let mut first = None;
    for (line, number) in text.lines().zip(1..) {
        let line = line.map_err(TraceError::Io)?;
        if line.trim().is_empty() {
            continue;
        }
        let malformed = |reason: String| TraceError::Malformed { line: number, reason };
        let line: Line = serde_json::from_str(&line).map_err(|error| malformed(error.to_string()))?;
        if line.input_length == 0 {
            return Err(malformed("a prompt without tokens".into()));
        }
        let start = *first.get_or_insert(line.timestamp);
        // Ids in the trace are small; those of this reader for what has none begin above them.
        let unshared = u64::from(u32::MAX) + number;
        let mut left = line.input_length;
        let ids = line.hash_ids.iter().map(|id| (u64::from(*id), SPAN)).chain([(unshared, u32::MAX)]);
        let segments: Vec<_> = ids
            .map_while(|(id, span)| {
                let tokens = span.min(left);
                left -= tokens;
                (tokens > 0).then_some(Segment { id, tokens })
            })
            .collect();
        let at = Start::At((line.timestamp - start).max(0.0) / 1000.0);
        calls.push(Call::new(at, &segments, OPENING, line.output_length.max(1), None));
    }
    Ok(Workload { calls })
}
