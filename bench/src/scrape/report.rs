//! The table of a run.

use std::fmt;

use super::{ALL, Sample, Scraped};
use crate::servers::MetricsText;
use crate::statistics::Middle;
use crate::table::markdown;

/// Most cores that Envoy may use more than without the scraper.
const LIMIT: f64 = 0.1;

pub(super) struct Report<'a> {
    pub(super) samples: &'a [Sample],
    pub(super) endpoints: usize,
}

impl Report<'_> {
    fn median(&self, scraped: Scraped, what: impl Fn(&Sample) -> f64) -> f64 {
        Middle::of(self.samples.iter().filter(|sample| sample.scraped == scraped).map(what)).median
    }

    fn over_idle(&self, scraped: Scraped) -> f64 {
        let cores = |scraped| self.median(scraped, |sample| sample.main + sample.others);
        cores(scraped) - cores(None)
    }

    fn row(&self, scraped: Scraped) -> Vec<String> {
        let rate = self.median(scraped, |sample| sample.rate);
        let over = self.over_idle(scraped);
        let each = if rate > 0.0 { format!("{:.0}", over * 1e6 / rate) } else { String::new() };
        vec![
            match scraped {
                None => "nothing".to_owned(),
                Some(MetricsText::Short) => "3 lines".to_owned(),
                Some(MetricsText::Unread) => "60 KB, not read".to_owned(),
                Some(MetricsText::Vllm) => "60 KB, read".to_owned(),
            },
            format!("{rate:.0}"),
            format!("{:.3}", self.median(scraped, |sample| sample.main)),
            format!("{:.3}", self.median(scraped, |sample| sample.others)),
            format!("{over:.3}"),
            each,
        ]
    }
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Cores that Envoy uses for scraping {} endpoints every 100 ms, medians.\n", self.endpoints)?;
        let header = ["scraped", "scrapes/s", "main thread", "other threads", "over idle", "CPU µs a scrape"];
        writeln!(f, "{}\n", markdown(&header, ALL.map(|scraped| self.row(scraped)), 1))?;
        let over = self.over_idle(Some(MetricsText::Vllm));
        write!(f, "Limit {LIMIT} over idle: {}.", if over <= LIMIT { "holds" } else { "MISSES" })
    }
}
