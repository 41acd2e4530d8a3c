//! Trace files: which format, and what is wrong with them.

use std::error::Error;
use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

use super::{Workload, azure, mooncake};

/// Why a trace cannot be used.
#[derive(Debug)]
pub enum TraceError {
    /// The file cannot be read or unpacked.
    Io(io::Error),
    /// The name ends neither in `.jsonl` nor in `.csv`, with or without `.gz`.
    UnknownFormat,
    /// A line is not what the format says.
    Malformed {
        /// Counted from 1.
        line: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// There is no request in it.
    Empty,
}

/// Reads a trace: Mooncake's from `.jsonl`, Azure's from `.csv`, either of them packed with gzip if `.gz` follows. Times
/// count from the first request on. Errors: see [`TraceError`].
pub fn load(path: &Path) -> Result<Workload, TraceError> {
    let file = BufReader::new(File::open(path).map_err(TraceError::Io)?);
    let packed = path.extension() == Some(OsStr::new("gz"));
    let inner = if packed { path.file_stem().map(Path::new) } else { Some(path) };
    let format = inner.and_then(Path::extension).and_then(OsStr::to_str);
    let text: Box<dyn BufRead> =
        if packed { Box::new(BufReader::new(MultiGzDecoder::new(file))) } else { Box::new(file) };
    let workload = match format {
        Some("jsonl") => mooncake::read(text)?,
        Some("csv") => azure::read(text)?,
        _ => return Err(TraceError::UnknownFormat),
    };
    if workload.calls.is_empty() { Err(TraceError::Empty) } else { Ok(workload) }
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::UnknownFormat => f.write_str("neither .jsonl (Mooncake) nor .csv (Azure), with or without .gz"),
            Self::Malformed { line, reason } => write!(f, "line {line}: {reason}"),
            Self::Empty => f.write_str("no request in it"),
        }
    }
}

impl Error for TraceError {}
