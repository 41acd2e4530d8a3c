//! What was decided, and why in words.

use std::fmt::{self, Write};

use crate::cost::Terms;
use crate::decimal::Thousandths;

/// A candidate the picker put in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranked {
    /// Its place in the pool.
    pub index: usize,
    /// `ip:port`.
    pub address: Box<str>,
    /// Sum of scores times weights.
    pub total: f64,
    /// Scorer name and what it gave; `None` where it could not tell.
    pub scores: Vec<(&'static str, Option<f64>)>,
    /// The seconds behind them, if a scorer reckons in seconds.
    pub terms: Option<Terms>,
}

/// The endpoints to try, best first. Empty: nothing may be picked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decision {
    /// Best first.
    pub ranked: Vec<Ranked>,
    /// Who reads the prompt, if it is not the first of these.
    pub prefill: Option<Ranked>,
}

impl Decision {
    /// The prompt is read by `reader`. A retry must not go there: it would have to hand over to itself.
    pub fn split(&mut self, reader: Ranked) {
        self.ranked.retain(|ranked| ranked.index != reader.index);
        self.prefill = Some(reader);
    }

    /// The destination as the header wants it: `ip:port` of the pick, then those to fall back to.
    pub fn destination(&self) -> Option<String> {
        let mut list = String::new();
        for ranked in &self.ranked {
            if !list.is_empty() {
                list.push(',');
            }
            list.push_str(&ranked.address);
        }
        Some(list).filter(|list| !list.is_empty())
    }
}

impl fmt::Display for Ranked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.address, Thousandths(self.total))?;
        if let Some(terms) = &self.terms {
            write!(f, ", {terms}")?;
        }
        let mut open = '(';
        for (name, score) in &self.scores {
            write!(f, "{}{name} ", if open == '(' { " (" } else { ", " })?;
            match score {
                Some(score) => write!(f, "{}", Thousandths(*score))?,
                None => f.write_str("unknown")?,
            }
            open = ',';
        }
        if open == ',' { f.write_char(')') } else { Ok(()) }
    }
}

/// One line: the pick with its scores, then the runner-up with its own, then who reads the prompt.
impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut ranked = self.ranked.iter();
        let Some(pick) = ranked.next() else { return f.write_str("nothing to pick") };
        write!(f, "{pick}")?;
        if let Some(next) = ranked.next() {
            write!(f, " before {next}")?;
        }
        match &self.prefill {
            Some(prefill) => write!(f, "; prefill by {prefill}"),
            None => Ok(()),
        }
    }
}
