//! A promise and whether it was kept.

use std::fmt;

use serde::Serialize;

/// A row of the suite's table.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// What was replayed.
    pub name: String,
    /// What was asked of it.
    pub checks: Vec<Check>,
    /// Why nothing was.
    pub skipped: Option<String>,
}

/// A figure and its bound.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    /// Which figure.
    pub what: String,
    /// What it came to.
    pub measured: f64,
    /// What it must not exceed or fall below.
    pub bound: f64,
    /// Which of the two.
    pub side: Side,
}

/// The side of the bound that is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// At most the bound.
    AtMost,
    /// At least the bound.
    AtLeast,
    /// More than the bound.
    Above,
}

/// Whether a row holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All checks hold.
    Passed,
    /// One does not.
    Failed,
    /// Nothing was checked.
    Skipped,
}

impl Row {
    /// Whether it holds.
    pub fn verdict(&self) -> Verdict {
        match self.skipped {
            Some(_) => Verdict::Skipped,
            None if self.checks.iter().all(Check::holds) => Verdict::Passed,
            None => Verdict::Failed,
        }
    }
}

impl Check {
    pub(super) fn at_most(what: &str, measured: f64, bound: f64) -> Self {
        Self { what: what.into(), measured, bound, side: Side::AtMost }
    }

    pub(super) fn at_least(what: &str, measured: f64, bound: f64) -> Self {
        Self { what: what.into(), measured, bound, side: Side::AtLeast }
    }

    pub(super) fn above(what: &str, measured: f64, bound: f64) -> Self {
        Self { what: what.into(), measured, bound, side: Side::Above }
    }

    /// Whether the figure is on the good side.
    pub fn holds(&self) -> bool {
        match self.side {
            Side::AtMost => self.measured <= self.bound,
            Side::AtLeast => self.measured >= self.bound,
            Side::Above => self.measured > self.bound,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Passed => "pass",
            Self::Failed => "FAIL",
            Self::Skipped => "skipped",
        })
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let relation = match self.side {
            Side::AtMost => "<=",
            Side::AtLeast => ">=",
            Side::Above => ">",
        };
        let mark = if self.holds() { "" } else { " (!)" };
        write!(f, "{} {} {relation} {}{mark}", self.what, digits(self.measured), digits(self.bound))
    }
}

/// One digit more than tables have, so that a near miss shows.
fn digits(value: f64) -> String {
    match value {
        ..10.0 => format!("{value:.3}"),
        ..100.0 => format!("{value:.2}"),
        _ => format!("{value:.1}"),
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(reason) = &self.skipped {
            return f.write_str(reason);
        }
        for (number, check) in self.checks.iter().enumerate() {
            write!(f, "{}{check}", if number == 0 { "" } else { "; " })?;
        }
        Ok(())
    }
}
