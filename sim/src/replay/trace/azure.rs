//! Azure's LLM inference traces of 2023: `TIMESTAMP,ContextTokens,GeneratedTokens`, no word of what prompts share.

use std::io::BufRead;

use jiff::Unit;
use jiff::civil::DateTime;
use serde::Deserialize;

use super::{Call, Segment, Start, TraceError, Workload};

#[derive(Deserialize)]
struct Row {
    #[serde(rename = "TIMESTAMP")]
    time: String,
    #[serde(rename = "ContextTokens")]
    prompt: u32,
    #[serde(rename = "GeneratedTokens")]
    output: u32,
}

pub(super) fn read(text: impl BufRead) -> Result<Workload, TraceError> {
    let mut calls = Vec::new();
    let mut first = None;
    let mut reader = csv::Reader::from_reader(text);
    for (row, line) in reader.deserialize().zip(2..) {
        let malformed = |reason: String| TraceError::Malformed { line, reason };
        let row: Row = row.map_err(|error| malformed(error.to_string()))?;
        let time: DateTime = row.time.parse().map_err(|error| malformed(format!("{:?}: {error}", row.time)))?;
        if row.prompt == 0 {
            return Err(malformed("a prompt without tokens".into()));
        }
        let since = time.since(*first.get_or_insert(time)).and_then(|span| span.total(Unit::Second));
        let at = Start::At(since.map_err(|error| malformed(error.to_string()))?.max(0.0));
        let prompt = Segment { id: line, tokens: row.prompt };
        calls.push(Call::new(at, &[prompt], 1, row.output.max(1), None));
    }
    Ok(Workload { calls })
}
