//! What a run came to, and two runs side by side.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use comfy_table::{CellAlignment, Table, presets};

use crate::load::Sample;

/// The picker has won if its median time to first token is at most this share of round robin's.
const TTFT_SHARE: f64 = 0.5;

/// And if it has had at least this many times round robin's cached tokens.
const CACHED_FACTOR: f64 = 1.4;

/// A finished run.
pub(crate) struct Outcome {
    /// Ascending.
    ttft: Vec<Duration>,
    prompt_tokens: u64,
    cached_tokens: u64,
    took: Duration,
    /// In the order of the servers.
    requests: Vec<usize>,
}

impl Outcome {
    pub(crate) fn new(samples: &[Sample], servers: &[SocketAddr], took: Duration) -> Self {
        let mut ttft: Vec<_> = samples.iter().map(|sample| sample.ttft).collect();
        ttft.sort_unstable();
        let of = |server: &SocketAddr| samples.iter().filter(|sample| sample.server == *server).count();
        Self {
            ttft,
            prompt_tokens: samples.iter().map(|sample| sample.prompt_tokens).sum(),
            cached_tokens: samples.iter().map(|sample| sample.cached_tokens).sum(),
            took,
            requests: servers.iter().map(of).collect(),
        }
    }

    /// Nearest rank.
    fn ttft(&self, percent: usize) -> Duration {
        let rank = (self.ttft.len() * percent).div_ceil(100).saturating_sub(1);
        self.ttft.get(rank).copied().unwrap_or_default()
    }

    fn cached(&self) -> f64 {
        self.cached_tokens as f64 / (self.prompt_tokens as f64).max(1.0)
    }
}

/// Round robin and the picker on the same load.
pub(crate) struct Comparison {
    pub(crate) round_robin: Outcome,
    pub(crate) picker: Outcome,
}

impl Comparison {
    /// Whether the picker was as much better as it is supposed to be.
    pub(crate) fn won(&self) -> bool {
        self.ttft_share() <= TTFT_SHARE && self.cached_factor() >= CACHED_FACTOR
    }

    fn ttft_share(&self) -> f64 {
        self.picker.ttft(50).as_secs_f64() / self.round_robin.ttft(50).as_secs_f64().max(f64::MIN_POSITIVE)
    }

    fn cached_factor(&self) -> f64 {
        self.picker.cached() / self.round_robin.cached().max(f64::MIN_POSITIVE)
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { round_robin, picker } = self;
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_header(["", "round robin", "picker", ""]);
        for percent in [50, 90, 99] {
            let (before, after) = (round_robin.ttft(percent), picker.ttft(percent));
            let share = after.as_secs_f64() / before.as_secs_f64().max(f64::MIN_POSITIVE);
            table.add_row([
                format!("time to first token, p{percent}"),
                milliseconds(before),
                milliseconds(after),
                format!("{share:.2} x"),
            ]);
        }
        let percent = |outcome: &Outcome| format!("{:.0} %", 100.0 * outcome.cached());
        let factor = format!("{:.2} x", self.cached_factor());
        table.add_row(["prompt tokens from cache".into(), percent(round_robin), percent(picker), factor]);
        let seconds = |outcome: &Outcome| format!("{:.1} s", outcome.took.as_secs_f64());
        table.add_row(["all chats done in".into(), seconds(round_robin), seconds(picker), String::new()]);
        for (at, (before, after)) in round_robin.requests.iter().zip(&picker.requests).enumerate() {
            table.add_row([
                format!("requests to server {}", at + 1),
                before.to_string(),
                after.to_string(),
                String::new(),
            ]);
        }
        table.column_iter_mut().skip(1).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
        writeln!(f, "{}\n", table.trim_fmt())?;
        let verdict = if self.won() { "The picker won" } else { "The picker did NOT win" };
        write!(
            f,
            "{verdict}: TTFT p50 {:.2} of round robin's (at most {TTFT_SHARE}), {:.2} times its cached tokens (at least \
             {CACHED_FACTOR}).",
            self.ttft_share(),
            self.cached_factor()
        )
    }
}

fn milliseconds(duration: Duration) -> String {
    format!("{:.0} ms", duration.as_secs_f64() * 1e3)
}
