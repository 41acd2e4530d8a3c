//! `utilization-filter`: not the endpoints that are too busy already.
//!
//! Each condition names a metric and the most that it may be; an endpoint must meet all. What is not known is not too much.
//! If none is left, nobody is, unless `fallbackOnEmpty` keeps all. Names and defaults: llm-d's endpoint picker, which takes
//! an unknown metric for 0 with the same outcome.

use serde::Deserialize;

use crate::schedule::{Candidate, Filter, Request, Rng};

/// Removes endpoints above a limit.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Utilization {
    /// All must be met; at least one.
    #[serde(deserialize_with = "some")]
    conditions: Vec<Condition>,
    /// Whether all stay if none meets them.
    #[serde(default)]
    fallback_on_empty: bool,
}

#[derive(Debug, Deserialize)]
#[serde(try_from = "Written")]
struct Condition(Written);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Written {
    metric: Metric,
    /// The most it may be: requests, or a share of 0..=1.
    max_value: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Metric {
    ActiveRequests,
    RunningRequests,
    WaitingQueue,
    KvCacheUtilization,
}

fn some<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<Condition>, D::Error> {
    let conditions = Vec::deserialize(deserializer)?;
    if conditions.is_empty() {
        Err(serde::de::Error::custom("at least one condition is needed"))
    } else {
        Ok(conditions)
    }
}

impl TryFrom<Written> for Condition {
    type Error = &'static str;

    fn try_from(written: Written) -> Result<Self, &'static str> {
        let most = if written.metric == Metric::KvCacheUtilization { 1.0 } else { f64::MAX };
        if (0.0..=most).contains(&written.max_value) {
            Ok(Self(written))
        } else {
            Err("`maxValue` must be a number of 0 or more, for `kv-cache-utilization` at most 1")
        }
    }
}

impl Condition {
    fn is_met(&self, candidate: &Candidate<'_>) -> bool {
        let value = match self.0.metric {
            Metric::ActiveRequests => Some(candidate.in_flight.into()),
            Metric::RunningRequests => candidate.running.map(f64::from),
            Metric::WaitingQueue => candidate.waiting.map(f64::from),
            Metric::KvCacheUtilization => candidate.kv_usage,
        };
        value.is_none_or(|value| value <= self.0.max_value)
    }
}

impl Filter for Utilization {
    fn filter(&self, _: &Request<'_>, candidates: &mut Vec<Candidate<'_>>, _: &mut Rng) {
        let fits = |candidate: &Candidate<'_>| self.conditions.iter().all(|condition| condition.is_met(candidate));
        if !self.fallback_on_empty || candidates.iter().any(fits) {
            candidates.retain(fits);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;

    /// Who stays of endpoints with so many active, running and waiting requests and so full a cache.
    fn kept(parameters: Value) -> Vec<usize> {
        let servers = [
            (1, Some(1), Some(0), Some(0.1)),
            (9, Some(4), Some(5), Some(0.8)),
            (9, Some(9), Some(6), Some(0.9)),
            (2, None, None, None),
        ];
        let candidates = servers.into_iter().enumerate().map(|(index, (in_flight, running, waiting, kv_usage))| {
            Candidate { index, in_flight, running, waiting, kv_usage, ..Candidate::named("10.0.0.1:8000") }
        });
        let mut candidates = candidates.collect();
        let filter: Utilization = from_value(parameters).unwrap();
        filter.filter(&Request::default(), &mut candidates, &mut Rng::new(1));
        candidates.into_iter().map(|candidate| candidate.index).collect()
    }

    fn at_most(metric: &str, max: f64) -> Value {
        json!({ "conditions": [{ "metric": metric, "maxValue": max }] })
    }

    #[test]
    fn who_has_at_most_the_limit_stays_and_so_does_who_does_not_tell() {
        assert_eq!(kept(at_most("active-requests", 2.0)), [0, 3]);
        assert_eq!(kept(at_most("running-requests", 4.0)), [0, 1, 3]);
        assert_eq!(kept(at_most("waiting-queue", 5.0)), [0, 1, 3]);
        assert_eq!(kept(at_most("kv-cache-utilization", 0.8)), [0, 1, 3]);
    }

    #[test]
    fn all_conditions_must_be_met() {
        let conditions =
            json!([{ "metric": "waiting-queue", "maxValue": 5 }, { "metric": "active-requests", "maxValue": 8 }]);
        assert_eq!(kept(json!({ "conditions": conditions })), [0, 3]);
    }

    #[test]
    fn nobody_is_left_unless_the_fallback_keeps_all() {
        let mut parameters = at_most("active-requests", 0.0);
        assert_eq!(kept(parameters.clone()), [0; 0]);
        parameters["fallbackOnEmpty"] = json!(true);
        assert_eq!(kept(parameters), [0, 1, 2, 3]);
    }

    #[test]
    fn limits_that_cannot_be_meant_are_refused() {
        let refused = |parameters| from_value::<Utilization>(parameters).unwrap_err().to_string();
        let limit = "`maxValue` must be a number of 0 or more, for `kv-cache-utilization` at most 1";
        assert_eq!(refused(at_most("kv-cache-utilization", 80.0)), limit);
        assert_eq!(refused(at_most("waiting-queue", -1.0)), limit);
        assert_eq!(refused(json!({ "conditions": [{ "metric": "waiting-queue" }] })), "missing field `maxValue`");
        assert_eq!(refused(json!({ "conditions": [] })), "at least one condition is needed");
        assert_eq!(refused(json!({})), "missing field `conditions`");
        let known = "`active-requests`, `running-requests`, `waiting-queue`, `kv-cache-utilization`";
        assert_eq!(refused(at_most("queue", 1.0)), format!("unknown variant `queue`, expected one of {known}"));
    }
}
