//! Results for people.

use std::fmt::Write;

use crate::replay::experiment::Outcome;

/// A Markdown table of what was tried on one scenario. Times in seconds, TPOT in milliseconds.
pub fn table(outcomes: &[Outcome]) -> String {
    let mut rows = vec![
        [
            "rule",
            "TTFT mean",
            "p50",
            "p90",
            "p99",
            "E2E",
            "TPOT ms",
            "p90",
            "goodput",
            "hits",
            "imbalance",
            "rejected",
            "preempted",
            "tok/s",
        ]
        .map(String::from)
        .to_vec(),
    ];
    rows.extend(outcomes.iter().map(|outcome| {
        let mean = &outcome.mean;
        vec![
            outcome.trial.to_string(),
            seconds(mean.ttft_mean),
            seconds(mean.ttft_p50),
            seconds(mean.ttft_p90),
            seconds(mean.ttft_p99),
            seconds(mean.e2e_mean),
            format!("{:.1}", mean.tpot_mean * 1e3),
            format!("{:.1}", mean.tpot_p90 * 1e3),
            format!("{:.3}", mean.goodput),
            format!("{:.3}", mean.hit_rate),
            format!("{:.2}", mean.imbalance),
            format!("{:.0}", mean.rejected),
            format!("{:.0}", mean.preemptions),
            format!("{:.0}", mean.output_rate),
        ]
    }));
    markdown(&rows, 1)
}

/// Three digits that mean something.
pub(super) fn seconds(value: f64) -> String {
    match value {
        ..1.0 => format!("{value:.3}"),
        ..10.0 => format!("{value:.2}"),
        _ => format!("{value:.1}"),
    }
}

/// A table whose first row is the head: the first `texts` columns to the left, the others to the right, padded so that it
/// can be read as it is.
pub(in crate::replay) fn markdown(rows: &[Vec<String>], texts: usize) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let cell = |row: &Vec<String>, column: usize| row.get(column).map_or(0, |cell| cell.chars().count());
    let widths: Vec<_> =
        (0..columns).map(|column| rows.iter().map(|row| cell(row, column)).max().unwrap_or(0)).collect();
    let mut text = String::new();
    for (number, row) in rows.iter().enumerate() {
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let width = *width;
            // Writing into a string does not fail.
            let _ = if column < texts { write!(text, "| {cell:<width$} ") } else { write!(text, "| {cell:>width$} ") };
        }
        text.push_str("|\n");
        if number == 0 {
            for (column, width) in widths.iter().enumerate() {
                text.push_str(if column < texts { "|:" } else { "|-" });
                text.push_str(&"-".repeat(*width));
                text.push_str(if column < texts { "-" } else { ":" });
            }
            text.push_str("|\n");
        }
    }
    text
}
