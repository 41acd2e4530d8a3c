//! The adapters of a server.
//!
//! vLLM leaves a series of `lora_requests_info` for every combination of adapters it ever had. The value is the time it
//! was last true, so only the newest series speaks of now; among equals the first, as the endpoint picker reads it. Each
//! engine core of a server has a newest of its own.

use super::Lora;
use super::series::MAX_SERIES;
use super::text::{Label, label, number, unescape};

/// Adapters of one server that are kept; more are counted as cut.
pub const MAX_ADAPTERS: usize = 64;

/// Bytes of an adapter's name as it stands in the text; a longer one is counted as cut.
pub const MAX_ADAPTER_NAME: usize = 256;

/// The newest series of one engine core.
#[derive(Clone, Copy, Debug)]
struct Newest<'a> {
    engine: &'a [u8],
    at: f64,
    max: u32,
    running: &'a [u8],
    waiting: &'a [u8],
}

/// The newest series of every engine core.
#[derive(Clone, Debug, Default)]
pub(super) struct NewestSet<'a>(Vec<Newest<'a>>);

impl<'a> NewestSet<'a> {
    /// False if there are too many engine cores.
    pub(super) fn add(&mut self, labels: &[Label<'a>], at: f64) -> bool {
        let text = |name| label(labels, name).unwrap_or_default();
        let newest = Newest {
            engine: text(b"engine"),
            at,
            max: number(text(b"max_lora")).map_or(0, |max| max as u32),
            running: text(b"running_lora_adapters"),
            waiting: text(b"waiting_lora_adapters"),
        };
        if let Some(other) = self.0.iter_mut().find(|other| other.engine == newest.engine) {
            if newest.at > other.at {
                *other = newest;
            }
        } else if self.0.len() < MAX_SERIES {
            self.0.push(newest);
        } else {
            return false;
        }
        true
    }

    /// All engine cores in one, and how many adapters were cut. `None` without a series.
    pub(super) fn union(&self) -> Option<(Lora, u32)> {
        let max = self.0.iter().map(|newest| newest.max).max()?;
        let mut present: Vec<&[u8]> = Vec::new();
        let mut cut: u32 = 0;
        let mut take = |list: fn(&Newest<'a>) -> &'a [u8]| {
            let before = present.len();
            for name in self.0.iter().flat_map(|newest| names(list(newest))) {
                if present.contains(&name) {
                    continue;
                }
                if present.len() < MAX_ADAPTERS && name.len() <= MAX_ADAPTER_NAME {
                    present.push(name);
                } else {
                    cut = cut.saturating_add(1);
                }
            }
            present.iter().skip(before).map(|name| unescape(name)).collect()
        };
        let running = take(|newest| newest.running);
        // vLLM repeats here what runs.
        let waiting = take(|newest| newest.waiting);
        Some((Lora { max, running, waiting }, cut))
    }
}

/// The names in a list; an empty list has none.
fn names(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|&byte| byte == b',').map(<[u8]>::trim_ascii).filter(|name| !name.is_empty())
}
