//! `context-length-aware`: endpoints for prompts of a certain length, as a scorer, a filter, or both.
//!
//! A label of the endpoint, `llm-d.ai/context-length-range` unless another one is named, says `min-max` in tokens, both
//! included. The score of a prompt of `t` tokens is
//!
//! - without the label 0.5,
//! - within the range `0.3 + 0.7 * (0.7 / (1 + width / 10000) + 0.3 * (max - t) / width)`, and 1 if the width is 0,
//! - outside `0.3 / (1 + distance / 1000)`.
//!
//! So a narrow range comes before a wide one, and any that fits before one that does not. Formula and defaults: llm-d's
//! endpoint picker. There one plugin is both scorer and filter; here it filters if it stands among the filters, or among the
//! scorers with `enableFiltering`. As a filter it takes out the endpoints whose range the prompt is not in, unless that
//! would be all: the length is estimated, and a server says better than we what is too long for it. A label that is no
//! range, which there costs the endpoint its requests, is refused with the configuration.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, de};

use crate::schedule::{Candidate, Filter, Request, Rng, Scorer};

/// Prefers endpoints meant for prompts of this length.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct ContextLengthAware {
    /// The label that has the range.
    #[serde(deserialize_with = "named")]
    label: String,
    /// Left out: as a filter it filters, as a scorer it does not.
    enable_filtering: Option<bool>,
}

impl Default for ContextLengthAware {
    fn default() -> Self {
        Self { label: "llm-d.ai/context-length-range".to_owned(), enable_filtering: None }
    }
}

fn named<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let label = String::deserialize(deserializer)?;
    if label.is_empty() { Err(de::Error::custom("a label must be named")) } else { Ok(label) }
}

/// Tokens, both ends included.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Range {
    min: u32,
    max: u32,
}

impl Range {
    fn parse(text: &str) -> Option<Self> {
        let (min, max) = text.split_once('-')?;
        let (min, max) = (min.trim().parse().ok()?, max.trim().parse().ok()?);
        (min <= max).then_some(Self { min, max })
    }

    fn holds(self, tokens: u32) -> bool {
        (self.min..=self.max).contains(&tokens)
    }

    fn score(self, tokens: u32) -> f64 {
        if !self.holds(tokens) {
            let distance = self.min.saturating_sub(tokens).max(tokens.saturating_sub(self.max));
            return 0.3 / (1.0 + f64::from(distance) / 1000.0);
        }
        let width = f64::from(self.max - self.min);
        if width == 0.0 {
            return 1.0;
        }
        let headroom = f64::from(self.max - tokens) / width;
        0.3 + 0.7 * (0.7 / (1.0 + width / 10_000.0) + 0.3 * headroom)
    }
}

impl ContextLengthAware {
    fn range(&self, candidate: &Candidate<'_>) -> Option<Range> {
        candidate.labels.get(&self.label).and_then(|text| Range::parse(text))
    }

    fn label_fault(&self, labels: &BTreeMap<String, String>) -> Option<String> {
        let text = labels.get(&self.label).filter(|text| Range::parse(text).is_none())?;
        Some(format!("{:?} is {text:?}, which is no range of tokens such as 0-8192", self.label))
    }
}

impl Scorer for ContextLengthAware {
    fn score(&self, _: &Request<'_>, candidates: &[Candidate<'_>], scores: &mut [Option<f64>]) {
        for (score, candidate) in scores.iter_mut().zip(candidates) {
            let range = self.range(candidate);
            *score = Some(range.map_or(0.5, |range| range.score(candidate.work.prompt_tokens)));
        }
    }

    fn label_fault(&self, labels: &BTreeMap<String, String>) -> Option<String> {
        self.label_fault(labels)
    }

    fn filter(&self) -> Option<Box<dyn Filter>> {
        (self.enable_filtering == Some(true)).then(|| Box::new(self.clone()) as Box<dyn Filter>)
    }
}

impl Filter for ContextLengthAware {
    fn filter(&self, _: &Request<'_>, candidates: &mut Vec<Candidate<'_>>, _: &mut Rng) {
        let fits = |candidate: &Candidate<'_>| {
            self.range(candidate).is_none_or(|range| range.holds(candidate.work.prompt_tokens))
        };
        if self.enable_filtering != Some(false) && candidates.iter().any(fits) {
            candidates.retain(fits);
        }
    }

    fn label_fault(&self, labels: &BTreeMap<String, String>) -> Option<String> {
        self.label_fault(labels)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::Work;
    use crate::schedule::scorers::testing::scores;

    fn labelled(range: &str) -> BTreeMap<String, String> {
        let label = ContextLengthAware::default().label;
        if range.is_empty() { BTreeMap::new() } else { [(label, range.to_owned())].into() }
    }

    /// The scores of endpoints with these labels, none where empty, for a prompt of so many tokens.
    fn of(tokens: u32, ranges: &[&str]) -> Vec<f64> {
        let labels: Vec<_> = ranges.iter().map(|range| labelled(range)).collect();
        let labels: Vec<_> = labels.iter().collect();
        let scores = scores(&ContextLengthAware::default(), &Request::default(), &labels, |c, labels| {
            c.labels = labels;
            c.work = Work { prompt_tokens: tokens, ..Work::default() };
        });
        scores.into_iter().map(Option::unwrap).collect()
    }

    fn kept(filter: &ContextLengthAware, tokens: u32, ranges: &[&str]) -> Vec<usize> {
        let labels: Vec<_> = ranges.iter().map(|range| labelled(range)).collect();
        let work = Work { prompt_tokens: tokens, ..Work::default() };
        let candidate = |(index, labels)| Candidate { index, labels, work, ..Candidate::named("10.0.0.1:8000") };
        let mut candidates = labels.iter().enumerate().map(candidate).collect();
        Filter::filter(filter, &Request::default(), &mut candidates, &mut Rng::new(1));
        candidates.into_iter().map(|candidate| candidate.index).collect()
    }

    #[test]
    fn a_narrow_range_comes_before_a_wide_one_and_a_fitting_one_before_any_other() {
        let scores = of(0, &["0-20", "0-10000", "500-1000", ""]);
        let exact = [0.3 + 0.7 * (0.7 / 1.002 + 0.3), 0.3 + 0.7 * (0.35 + 0.3), 0.3 / 1.5, 0.5];
        for (score, exact) in scores.iter().zip(exact) {
            assert!((score - exact).abs() < 1e-12, "{scores:?}");
        }
        let scores = of(14_999, &["0-15000", "15001-20000"]);
        assert!(scores[0] > 0.3 && scores[1] < 0.3, "{scores:?}");
        assert_eq!(of(7, &["7-7", "7-7"]), [1.0, 1.0]);
    }

    #[test]
    fn outside_of_all_ranges_the_nearest_comes_first() {
        let above = of(9000, &["0-2048", "0-8192"]);
        assert!(above[0] < above[1], "{above:?}");
        let below = of(50, &["500-2048", "100-1024"]);
        assert!(below[0] < below[1], "{below:?}");
        assert!(above.iter().chain(&below).all(|score| *score > 0.0 && *score < 0.3));
    }

    #[test]
    fn the_filter_leaves_those_whose_range_the_prompt_is_in() {
        let filter = ContextLengthAware::default();
        assert_eq!(kept(&filter, 0, &["0-100", "100-500", "0-2000", ""]), [0, 2, 3]);
        assert_eq!(kept(&filter, 42, &["0-52", "142-242"]), [0]);
        assert_eq!(kept(&filter, 100, &["0-100", "100-500"]), [0, 1], "both ends are included");
        assert_eq!(kept(&filter, 9000, &["0-100", "100-500"]), [0, 1], "rather all than none");
    }

    #[test]
    fn where_it_stands_and_what_it_is_told_say_whether_it_filters() {
        let told = |enable_filtering| ContextLengthAware { enable_filtering, ..ContextLengthAware::default() };
        assert_eq!(kept(&told(Some(false)), 0, &["0-100", "100-500"]), [0, 1]);
        let beside_its_score = |enable| Scorer::filter(&told(enable)).is_some();
        assert_eq!([None, Some(false), Some(true)].map(beside_its_score), [false, false, true]);
    }

    #[test]
    fn a_range_is_two_whole_numbers_in_order() {
        assert_eq!(Range::parse("0-100"), Some(Range { min: 0, max: 100 }));
        assert_eq!(Range::parse(" 0 - 100 "), Some(Range { min: 0, max: 100 }));
        for wrong in ["", "0-100-200", "100-50", "abc-100", "100", "-5-10", "0-99999999999"] {
            assert_eq!(Range::parse(wrong), None, "{wrong:?}");
        }
    }
}
