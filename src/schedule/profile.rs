//! A resolved profile and the decision it takes.

use std::collections::BTreeMap;
use std::fmt;

use super::{Candidate, Decision, Filter, Picker, Ranked, Request, Rng, Scorer, failing, slow_start};
use crate::decimal::Written;
use crate::session::Session;

/// A scorer in a profile.
pub struct Weighted {
    /// Its registered name.
    pub name: &'static str,
    /// What its score is multiplied by; finite, not negative.
    pub weight: f64,
    /// The scorer.
    pub scorer: Box<dyn Scorer>,
}

/// Filters, scorers and a picker, ready to decide.
pub struct Profile {
    /// In this order.
    pub filters: Vec<(&'static str, Box<dyn Filter>)>,
    /// In this order.
    pub scorers: Vec<Weighted>,
    /// Name and picker.
    pub picker: (&'static str, Box<dyn Picker>),
}

impl Profile {
    /// The request headers that its plugins look at.
    pub fn headers(&self) -> impl Iterator<Item = &str> {
        let filters = self.filters.iter().flat_map(|(_, filter)| filter.headers());
        filters.chain(self.scorers.iter().flat_map(|scorer| scorer.scorer.headers()))
    }

    /// How each of its plugins that look at sessions tells them.
    pub fn sessions(&self) -> impl Iterator<Item = &Session> {
        let filters = self.filters.iter().filter_map(|(_, filter)| filter.session());
        filters.chain(self.scorers.iter().filter_map(|scorer| scorer.scorer.session()))
    }

    /// What is wrong with an endpoint's labels for one of its plugins.
    pub fn label_fault(&self, labels: &BTreeMap<String, String>) -> Option<String> {
        let filters = self.filters.iter().find_map(|(_, filter)| filter.label_fault(labels));
        filters.or_else(|| self.scorers.iter().find_map(|scorer| scorer.scorer.label_fault(labels)))
    }

    /// How many endpoints are to be remembered in the order of the last cold prompt that came to them; see
    /// [`Scorer::cold_memory`].
    pub fn cold_memory(&self) -> u32 {
        self.scorers.iter().map(|scorer| scorer.scorer.cold_memory()).max().unwrap_or(0)
    }

    /// Places `request` on one of `candidates`; those that a filter takes away are gone then. Whatever the profile, an
    /// endpoint that fails its requests gets but a probe, and a newcomer no herd.
    pub fn decide(&self, request: &Request<'_>, candidates: &mut Vec<Candidate<'_>>, rng: &mut Rng) -> Decision {
        let mut held_back = failing::hold_back(candidates);
        held_back.append(&mut slow_start::hold_back(candidates));
        self.filter(request, candidates, rng);
        if candidates.is_empty() && !held_back.is_empty() {
            // The others cannot serve it. Rather a failing server or a herd than no answer.
            candidates.append(&mut held_back);
            self.filter(request, candidates, rng);
        }
        let mut totals = vec![0.0; candidates.len()];
        let columns: Vec<Vec<Option<f64>>> = self
            .scorers
            .iter()
            .map(|Weighted { weight, scorer, .. }| {
                let mut scores = vec![None; candidates.len()];
                scorer.score(request, candidates, &mut scores);
                add(&mut totals, &scores, *weight);
                scores
            })
            .collect();
        let (_, picker) = &self.picker;
        let order = picker.pick(request, &totals, rng);
        let ranked = order.into_iter().filter_map(|index| {
            let candidate = candidates.get(index)?;
            Some(Ranked {
                index: candidate.index,
                address: candidate.address.into(),
                total: *totals.get(index)?,
                terms: self.scorers.iter().find_map(|scorer| scorer.scorer.explain(candidate)),
                scores: self
                    .scorers
                    .iter()
                    .zip(&columns)
                    .map(|(scorer, column)| (scorer.name, column.get(index).copied().flatten()))
                    .collect(),
            })
        });
        let mut ranked: Vec<Ranked> = ranked.collect();
        if !ranked.is_empty() && ranked.len() < picker.most() {
            // Where the proxy may try again, one that is held back is better than any.
            self.filter(request, &mut held_back, rng);
            ranked.extend(held_back.iter().take(picker.most() - ranked.len()).map(|candidate| Ranked {
                index: candidate.index,
                address: candidate.address.into(),
                total: 0.0,
                scores: Vec::new(),
                terms: None,
            }));
        }
        Decision { ranked, prefill: None }
    }

    fn filter(&self, request: &Request<'_>, candidates: &mut Vec<Candidate<'_>>, rng: &mut Rng) {
        for (_, filter) in &self.filters {
            filter.filter(request, candidates, rng);
        }
    }
}

/// Adds `weight` times each score; an unknown score counts as the mean of the known ones.
fn add(totals: &mut [f64], scores: &[Option<f64>], weight: f64) {
    let (sum, known) = scores.iter().flatten().fold((0.0, 0u32), |(sum, n), score| (sum + score, n + 1));
    let neutral = if known > 0 { sum / f64::from(known) } else { 0.0 };
    for (total, score) in totals.iter_mut().zip(scores) {
        *total += weight * score.unwrap_or(neutral).clamp(0.0, 1.0);
    }
}

impl fmt::Debug for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scorers: Vec<_> = self.scorers.iter().map(|s| (s.name, Written(s.weight))).collect();
        let filters: Vec<_> = self.filters.iter().map(|(name, _)| name).collect();
        f.debug_struct("Profile")
            .field("filters", &filters)
            .field("scorers", &scorers)
            .field("picker", &self.picker.0)
            .finish()
    }
}
