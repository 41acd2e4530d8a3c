//! `label-selector-filter`: only the endpoints whose labels a Kubernetes label selector matches.
//!
//! `matchLabels` and `matchExpressions` mean what they mean in Kubernetes: all of them must hold, `NotIn` also holds for an
//! endpoint without the label, and a selector that asks for nothing matches everyone. Who does not match cannot serve the
//! request, so nobody may be left.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::schedule::{Candidate, Filter, Request, Rng};

/// Removes endpoints that the selector does not match.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct LabelSelector {
    /// Labels and the value that each must have.
    match_labels: BTreeMap<String, String>,
    /// What else must hold.
    match_expressions: Vec<Requirement>,
}

#[derive(Debug, Deserialize)]
#[serde(try_from = "Written")]
struct Requirement(Written);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    key: String,
    operator: Operator,
    /// Empty where the operator takes none.
    #[serde(default)]
    values: Vec<String>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
}

impl TryFrom<Written> for Requirement {
    type Error = &'static str;

    fn try_from(written: Written) -> Result<Self, &'static str> {
        match (written.values.is_empty(), written.operator) {
            _ if written.key.is_empty() => Err("`key` must name a label"),
            (true, Operator::In | Operator::NotIn) => Err("`In` and `NotIn` need `values`"),
            (false, Operator::Exists | Operator::DoesNotExist) => Err("`Exists` and `DoesNotExist` take no `values`"),
            _ => Ok(Self(written)),
        }
    }
}

impl Requirement {
    fn holds(&self, labels: &BTreeMap<String, String>) -> bool {
        let Self(Written { key, operator, values }) = self;
        let value = labels.get(key);
        let listed = value.is_some_and(|value| values.contains(value));
        match operator {
            Operator::In => listed,
            Operator::NotIn => !listed,
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
        }
    }
}

impl Filter for LabelSelector {
    fn filter(&self, _: &Request<'_>, candidates: &mut Vec<Candidate<'_>>, _: &mut Rng) {
        candidates.retain(|candidate| {
            self.match_labels.iter().all(|(key, value)| candidate.labels.get(key) == Some(value))
                && self.match_expressions.iter().all(|requirement| requirement.holds(candidate.labels))
        });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;
    use crate::schedule::filters::testing::{kept, labels};

    fn chosen(selector: Value) -> Vec<usize> {
        let servers = [labels(&[("gpu", "h100"), ("zone", "a")]), labels(&[("gpu", "l4"), ("zone", "a")]), labels(&[])];
        kept(&from_value::<LabelSelector>(selector).unwrap(), &servers)
    }

    fn expression(operator: &str, values: &[&str]) -> Value {
        json!({ "matchExpressions": [{ "key": "gpu", "operator": operator, "values": values }] })
    }

    #[test]
    fn every_label_must_match() {
        assert_eq!(chosen(json!({ "matchLabels": { "zone": "a" } })), [0, 1]);
        assert_eq!(chosen(json!({ "matchLabels": { "zone": "a", "gpu": "l4" } })), [1]);
        assert_eq!(chosen(json!({})), [0, 1, 2]);
    }

    #[test]
    fn expressions_mean_what_they_mean_in_kubernetes() {
        assert_eq!(chosen(expression("In", &["h100", "h200"])), [0]);
        assert_eq!(chosen(expression("NotIn", &["h100"])), [1, 2], "also without the label");
        assert_eq!(chosen(expression("Exists", &[])), [0, 1]);
        assert_eq!(chosen(expression("DoesNotExist", &[])), [2]);
        let both = json!({
            "matchLabels": { "zone": "a" },
            "matchExpressions": [{ "key": "gpu", "operator": "Exists" }, { "key": "gpu", "operator": "NotIn", "values": ["l4"] }],
        });
        assert_eq!(chosen(both), [0]);
    }

    #[test]
    fn nobody_may_be_left() {
        assert_eq!(chosen(json!({ "matchLabels": { "zone": "b" } })), [0; 0]);
    }

    #[test]
    fn a_selector_that_kubernetes_would_refuse_is_refused() {
        let refused = |selector| from_value::<LabelSelector>(selector).unwrap_err().to_string();
        let operator = "unknown variant `in`, expected one of `In`, `NotIn`, `Exists`, `DoesNotExist`";
        assert_eq!(refused(expression("in", &["a"])), operator);
        assert_eq!(refused(expression("In", &[])), "`In` and `NotIn` need `values`");
        assert_eq!(refused(expression("Exists", &["a"])), "`Exists` and `DoesNotExist` take no `values`");
        assert_eq!(
            refused(json!({ "matchExpressions": [{ "key": "", "operator": "Exists" }] })),
            "`key` must name a label"
        );
        assert_eq!(refused(json!({ "matchExpressions": [{ "operator": "Exists" }] })), "missing field `key`");
        let values = json!({ "matchExpressions": [{ "key": "a", "operator": "In", "values": [1] }] });
        assert_eq!(refused(values), "invalid type: integer `1`, expected a string");
        let unknown = json!({ "matchExpressions": [{ "key": "a", "op": "Exists" }] });
        assert_eq!(refused(unknown), "unknown field `op`, expected one of `key`, `operator`, `values`");
    }
}
