//! The table of servers while a run goes on: redrawn in place on a terminal, a line now and then elsewhere.

use std::io;
use std::time::Duration;

use comfy_table::{CellAlignment, Table, presets};
use console::Term;
use sim::server::ServerStats;
use testbed::Fleet;
use tokio::time::Instant;

const REDRAW: Duration = Duration::from_millis(250);
const LINE: Duration = Duration::from_secs(5);

/// Shows a fleet.
pub(crate) struct Live {
    terminal: Term,
    title: &'static str,
    requests: usize,
    begin: Instant,
    drawn: usize,
}

impl Live {
    pub(crate) fn new(title: &'static str, requests: usize) -> Self {
        Self { terminal: Term::stdout(), title, requests, begin: Instant::now(), drawn: 0 }
    }

    /// How often to call [`Live::show`].
    pub(crate) fn period(&self) -> Duration {
        if self.terminal.is_term() { REDRAW } else { LINE }
    }

    /// Shows the state of the servers.
    pub(crate) fn show(&mut self, fleet: &Fleet, done: usize) -> io::Result<()> {
        let seconds = self.begin.elapsed().as_secs_f64();
        let progress = format!("{}: {done} of {} requests, {seconds:.0} s", self.title, self.requests);
        let servers = fleet.addresses().iter().zip(fleet.stats());
        if !self.terminal.is_term() {
            let servers = servers.map(|(_, stats)| stats.map_or_else(|| "down".to_owned(), |stats| brief(&stats)));
            return self.terminal.write_line(&format!("{progress}; {}", servers.collect::<Vec<_>>().join(" | ")));
        }
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_header(["server", "queue", "running", "KV", "picks", "prefix hits"]);
        for (address, stats) in servers {
            let mut row = vec![address.to_string()];
            row.extend(stats.map_or_else(|| vec!["down".to_owned()], |stats| full(&stats)));
            table.add_row(row);
        }
        table.column_iter_mut().skip(1).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
        let text = format!("{progress}\n{}", table.trim_fmt());
        self.terminal.clear_last_lines(self.drawn)?;
        self.drawn = text.lines().count();
        self.terminal.write_line(&text)
    }
}

fn full(stats: &ServerStats) -> Vec<String> {
    vec![
        stats.waiting.to_string(),
        stats.running.to_string(),
        percent(stats.kv_usage),
        stats.requests.to_string(),
        percent(hits(stats)),
    ]
}

fn brief(stats: &ServerStats) -> String {
    let (queue, running) = (stats.waiting, stats.running);
    format!("{queue} queued {running} running, KV {}, hits {}", percent(stats.kv_usage), percent(hits(stats)))
}

fn hits(stats: &ServerStats) -> f64 {
    stats.cached_tokens as f64 / (stats.prompt_tokens as f64).max(1.0)
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}
