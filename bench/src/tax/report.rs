//! The tables of a run.

use std::fmt;

use super::limits;
use super::measure::{Case, Idle, Round, Sample};
use super::proxy::Way;
use crate::statistics::Middle;
use crate::table::markdown;

/// What all rounds came to.
pub(super) struct Report<'a> {
    rounds: &'a [Round],
    idle: Idle,
    endpoints: usize,
}

/// What a way costs more than the direct one.
struct Added {
    p50: Middle,
    p99: Middle,
    /// Requests in a second, as a share of those of the direct way.
    rate: f64,
    envoy: Middle,
    service: Middle,
    cpu: Middle,
}

impl<'a> Report<'a> {
    pub(super) fn new(rounds: &'a [Round], idle: Idle, endpoints: usize) -> Self {
        Self { rounds, idle, endpoints }
    }

    fn added(&self, case: Case, way: Way) -> Added {
        let pairs = || self.rounds.iter().map(|round| (round.sample(case, way), round.sample(case, Way::Direct)));
        let more = |what: fn(&Sample) -> f64| Middle::of(pairs().map(|(way, direct)| what(&way) - what(&direct)));
        Added {
            p50: more(|sample| sample.p50),
            p99: more(|sample| sample.p99),
            rate: Middle::of(pairs().map(|(way, direct)| way.rate / direct.rate)).median,
            envoy: more(|sample| sample.envoy),
            service: more(|sample| sample.service),
            cpu: more(|sample| sample.envoy + sample.service),
        }
    }

    fn costs(&self, case: Case) -> Vec<Vec<String>> {
        let direct = |what: fn(&Sample) -> f64| {
            Middle::of(self.rounds.iter().map(|round| what(&round.sample(case, Way::Direct)))).median
        };
        let name = |way: Way| vec![case.size.name().to_owned(), case.concurrency.to_string(), way.name().to_owned()];
        let absolute = [
            format!("({:.0})", direct(|sample| sample.p50)),
            format!("({:.0})", direct(|sample| sample.p99)),
            format!("({:.0}/s)", direct(|sample| sample.rate)),
            format!("({:.0})", direct(|sample| sample.envoy)),
            String::new(),
            String::new(),
        ];
        let mut rows = vec![name(Way::Direct)];
        rows.iter_mut().for_each(|row| row.extend(absolute.clone()));
        for way in [Way::Empty, Way::Picker, Way::Service] {
            let Added { p50, p99, rate, envoy, service, cpu } = self.added(case, way);
            let numbers = [
                p50.to_string(),
                p99.to_string(),
                format!("{rate:.2}"),
                envoy.to_string(),
                service.to_string(),
                cpu.to_string(),
            ];
            rows.push([name(way), numbers.to_vec()].concat());
        }
        rows
    }

    fn ratios(&self, case: Case) -> Vec<String> {
        let (picker, service) = (self.added(case, Way::Picker), self.added(case, Way::Service));
        let limit = limits::of(case);
        let ratio = |ours: Middle, theirs: Middle| {
            let ratio = ours.median / theirs.median;
            format!("1/{:.1} {}", 1.0 / ratio, if ratio <= limit { "holds" } else { "MISSES" })
        };
        vec![
            case.size.name().to_owned(),
            case.concurrency.to_string(),
            ratio(picker.p50, service.p50),
            ratio(picker.cpu, service.cpu),
            format!("1/{:.0}", 1.0 / limit),
        ]
    }
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rounds, idle, endpoints } = self;
        writeln!(f, "Added to the direct way, median [quartiles] of {} rounds; microseconds.", rounds.len())?;
        writeln!(f, "In parentheses the direct way itself.\n")?;
        let header =
            ["request", "at a time", "way", "p50", "p99", "requests/s", "CPU Envoy", "CPU service", "CPU together"];
        writeln!(f, "{}\n", markdown(&header, Case::all().flat_map(|case| self.costs(case)), 3))?;
        writeln!(f, "The picker's share of what ext_proc adds.\n")?;
        let header = ["request", "at a time", "p50", "CPU", "limit"];
        writeln!(f, "{}\n", markdown(&header, Case::all().map(|case| self.ratios(case)), 2))?;
        write!(
            f,
            "While idle Envoy uses {:.3} cores, for scraping {endpoints} endpoints; that is taken off above.",
            idle.envoy
        )
    }
}
