//! Which models are replaced by which.

use super::model::ModelName;
use super::{ConfigError, Whole};
use crate::rewrite::{Rule, Rules, Target};
use crate::routes::Routes;
use serde::Deserialize;

/// What becomes of the requests for one model, or for all that have no rule of their own.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenRewrite {
    /// The model as clients name it. If left out, the rule is for every model that has no rule of its own; there can be
    /// one such rule.
    model: Option<ModelName>,
    /// The models that the requests go to; at least one.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    targets: Vec<WrittenTarget>,
}

/// A model that gets a part of the requests.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct WrittenTarget {
    /// The model, or adapter, as the servers name it.
    model: ModelName,
    /// Its share of the requests: this of the sum of all weights of the rule.
    #[serde(default = "one")]
    weight: Whole<1, 1_000_000>,
}

fn one() -> Whole<1, 1_000_000> {
    Whole::of(1)
}

/// Checks the rules in the order written.
pub(super) fn resolve(written: Vec<WrittenRewrite>) -> Result<Rules, ConfigError> {
    let mut rules: Vec<Rule> = Vec::with_capacity(written.len());
    for WrittenRewrite { model, targets } in written {
        let model = model.map(|ModelName(model)| model);
        let refused =
            |field, message| Err(ConfigError::at(format!("model_rewrites[{}].{field}", rules.len()), message));
        if let Some(first) = rules.iter().position(|rule| rule.model == model) {
            return refused("model", format!("never used: model_rewrites[{first}] is for the same requests"));
        }
        if targets.is_empty() {
            return refused("targets", "at least one target is needed".to_owned());
        }
        let targets = targets.into_iter();
        let targets =
            targets.map(|WrittenTarget { model: ModelName(model), weight }| Target { model, weight: weight.get() });
        rules.push(Rule { model, targets: targets.collect() });
    }
    Ok(Rules(rules))
}

/// Checks that some pool serves every target.
pub(super) fn check(rules: &Rules, routes: &Routes) -> Result<(), ConfigError> {
    for (i, rule) in rules.0.iter().enumerate() {
        for (j, Target { model, .. }) in rule.targets.iter().enumerate() {
            if !routes.serve(model) {
                let path = format!("model_rewrites[{i}].targets[{j}].model");
                return Err(ConfigError::at(path, format!("no pool serves {model:?}")));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::load;
    use crate::rewrite::Rules;

    fn read(rules: &str) -> Result<Rules, String> {
        let json = format!(r#"{{"pool":{{"endpoints":[{{"address":"10.0.0.1:8000"}}]}},"model_rewrites":{rules}}}"#);
        load(json.as_bytes()).map(|config| config.model_rewrites).map_err(|error| error.to_string())
    }

    #[track_caller]
    fn refused(rules: &str, message: &str) {
        assert_eq!(read(rules).unwrap_err(), message);
    }

    #[test]
    fn exact_and_generic_rules_with_weights_are_read() {
        let rules = read(
            r#"[{"targets":[{"model":"any"}]},{"model":"a","targets":[{"model":"b","weight":1000000},{"model":"a","weight":2.0}]}]"#,
        );
        let rules = rules.unwrap();
        assert_eq!((rules.target(b"x", 0), rules.target(b"a", 0)), (Some("any"), Some("b")));
        assert_eq!(rules.target(b"a", 1_000_001), Some("a"));
        assert!(read("[]").unwrap().is_empty());
    }

    #[test]
    fn a_rule_that_another_shadows_is_refused_with_the_place_of_the_first() {
        let rule = |model: &str| format!(r#"{{{model}"targets":[{{"model":"b"}}]}}"#);
        let (named, other, generic) = (rule(r#""model":"a","#), rule(r#""model":"c","#), rule(""));
        refused(
            &format!("[{other},{named},{generic},{named}]"),
            "model_rewrites[3].model: never used: model_rewrites[1] is for the same requests",
        );
        refused(
            &format!("[{generic},{named},{generic}]"),
            "model_rewrites[2].model: never used: model_rewrites[0] is for the same requests",
        );
    }

    #[test]
    fn weights_out_of_range_are_refused() {
        for (weight, problem) in [
            ("0", "0 is not a whole number from 1 to 1000000"),
            ("1000001", "1000001 is not a whole number from 1 to 1000000"),
            ("-1", "-1 is not a whole number from 1 to 1000000"),
            (r#""5""#, "invalid type: string \"5\", expected a whole number from 1 to 1000000"),
        ] {
            refused(
                &format!(r#"[{{"targets":[{{"model":"b"}},{{"model":"c","weight":{weight}}}]}}]"#),
                &format!("model_rewrites[0].targets[1].weight: {problem}"),
            );
        }
    }

    #[test]
    fn a_rule_needs_targets_and_names_that_can_be_written() {
        refused(r#"[{"model":"a","targets":[]}]"#, "model_rewrites[0].targets: at least one target is needed");
        refused(r#"[{"model":"a"}]"#, "model_rewrites[0]: missing field `targets`");
        let what = "is not a name of 1 to 256 bytes without control characters";
        refused(r#"[{"model":"","targets":[{"model":"b"}]}]"#, &format!("model_rewrites[0].model: \"\" {what}"));
        refused(
            r#"[{"targets":[{"model":"b\r\nhost: x"}]}]"#,
            &format!("model_rewrites[0].targets[0].model: \"b\\r\\nhost: x\" {what}"),
        );
        refused(
            r#"[{"target":[]}]"#,
            "model_rewrites[0].target: unknown field; did you mean `targets`? Known here: `model`, `targets`",
        );
    }
}
