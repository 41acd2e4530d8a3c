use super::*;
use crate::headers::Headers;
use crate::prompt::Facts;

fn json(choice: &str) -> String {
    with(&format!(r#", "model_choice": {choice}"#))
}

fn rules(rules: &str) -> String {
    json(&format!(r#"{{"rules": [{rules}], "default": "small"}}"#))
}

#[track_caller]
fn routes(json: &str) -> Routes {
    load_pools(json.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{json}")).routes
}

fn facts(said: &str) -> Facts {
    Facts { said: said.into(), ..Facts::default() }
}

#[test]
fn the_first_rule_that_holds_decides() {
    let choice = routes(&rules(
        r#"{"model": "gold", "header": "X-Tier", "equals": "gold"},
           {"model": "seeing", "has_images": true},
           {"model": "coder", "keywords": ["Traceback", "refactor"], "max_prompt_tokens": 8000},
           {"model": "agent", "has_tools": true, "has_images": false},
           {"model": "long", "min_prompt_tokens": 32000},
           {"model": "tried", "header": "x-trial"}"#,
    ))
    .choice
    .unwrap();
    let headers = |name: &str, value: &str| Headers::from_iter([(name.into(), value.into())]);
    let none = Headers::default();
    let gold = headers("x-tier", "gold");
    for (facts, headers, model) in [
        (facts("hello"), &none, "small"),
        (facts("hello"), &gold, "gold"),
        (facts("hello"), &headers("x-tier", "silver"), "small"),
        (facts("hello"), &headers("x-trial", ""), "tried"),
        (Facts { images: true, tools: true, ..Facts::default() }, &none, "seeing"),
        (facts("please refactoring"), &none, "coder"),
        (Facts { tokens: 8000, ..facts("a traceback") }, &none, "coder"),
        (Facts { tokens: 8001, ..facts("a traceback") }, &none, "small"),
        (Facts { tools: true, ..Facts::default() }, &none, "agent"),
        (Facts { tokens: 32_000, ..Facts::default() }, &none, "long"),
        (Facts { tokens: 31_999, ..Facts::default() }, &none, "small"),
    ] {
        assert_eq!(choice.choose(&facts, headers), model, "{facts:?} {headers:?}");
    }
}

#[test]
fn only_who_leaves_it_open_gets_a_choice() {
    let choice = routes(&rules(r#"{"model": "big", "has_tools": true}"#)).choice.unwrap();
    assert!(choice.applies_to(b"auto") && !choice.applies_to(b"big") && !choice.applies_to(b"AUTO"));
    let choice = routes(&json(r#"{"applies_to": ["any", "best"], "rules": [], "default": "m"}"#)).choice.unwrap();
    assert!(choice.applies_to(b"best") && !choice.applies_to(b"auto"));
}

#[test]
fn the_headers_of_rules_are_read_once() {
    let config =
        good(&rules(r#"{"model": "a", "header": "X-Tier", "equals": "gold"}, {"model": "b", "header": "x-tier"}"#));
    assert_eq!(config.request_headers, ["x-tier".into()]);
}

#[test]
fn a_rule_that_is_never_reached_is_refused() {
    let never = "model_choice.rules[1]: never reached, because rules[0] holds wherever this one does";
    for pair in [
        r#"{"model": "a", "has_tools": true}, {"model": "b", "has_tools": true, "has_images": true}"#,
        r#"{"model": "a", "header": "x-tier"}, {"model": "b", "header": "X-Tier", "equals": "gold"}"#,
        r#"{"model": "a", "min_prompt_tokens": 10}, {"model": "b", "min_prompt_tokens": 20, "max_prompt_tokens": 30}"#,
        r#"{"model": "a", "keywords": ["fix", "bug"]}, {"model": "b", "keywords": ["Debugger", "FIX"]}"#,
        r#"{"model": "a", "has_images": false}, {"model": "b", "has_images": false}"#,
    ] {
        refused(rules(pair), never);
    }
    for pair in [
        r#"{"model": "a", "has_tools": true}, {"model": "b", "has_images": true}"#,
        r#"{"model": "a", "header": "x-tier", "equals": "gold"}, {"model": "b", "header": "x-tier"}"#,
        r#"{"model": "a", "min_prompt_tokens": 20}, {"model": "b", "min_prompt_tokens": 10}"#,
        r#"{"model": "a", "keywords": ["fix"]}, {"model": "b", "keywords": ["fix", "bug"]}"#,
        r#"{"model": "a", "keywords": ["fix"]}, {"model": "b", "has_tools": true}"#,
    ] {
        routes(&rules(pair));
    }
}

#[test]
fn a_rule_needs_conditions_that_can_hold() {
    let needed = "model_choice.rules[0]: a condition is needed; the model where no rule holds is `default`";
    for rule in [r#"{"model": "a"}"#, r#"{"model": "a", "min_prompt_tokens": 0, "keywords": []}"#] {
        refused(rules(rule), needed);
    }
    for (rule, message) in [
        (r#""equals": "gold""#, "equals: needs `header`, whose value it is"),
        (r#""header": "x tier""#, "header: the name of a header is needed"),
        (r#""keywords": ["a", ""]"#, "keywords: an empty keyword is in every message"),
        (r#""min_prompt_tokens": 2, "max_prompt_tokens": 1"#, "min_prompt_tokens: more than `max_prompt_tokens`"),
        (r#""max_prompt_tokens": -1"#, "max_prompt_tokens: -1 is not a whole number from 0 to 10000000"),
    ] {
        refused(rules(&format!(r#"{{"model": "a", {rule}}}"#)), &format!("model_choice.rules[0].{message}"));
    }
}

#[test]
fn a_model_that_may_be_chosen_is_served_somewhere() {
    let served = |choice: &str| {
        let pool = r#"{"endpoints": [{"address": "10.0.0.1:8000"}], "models": ["a", "b"]}"#;
        format!(r#"{{"pool": {pool}, "model_choice": {choice}}}"#)
    };
    routes(&served(r#"{"rules": [{"model": "a", "has_tools": true}], "default": "b"}"#));
    // Or stands for one that is.
    let alias = r#"{"rules": [], "default": "c"}, "model_rewrites": [{"model": "c", "targets": [{"model": "a"}]}]"#;
    routes(&served(alias));
    let nobody = r#"{"rules": [], "default": "a"}, "model_rewrites": [{"targets": [{"model": "a"}, {"model": "d"}]}]"#;
    refused(served(nobody), r#"model_rewrites[0].targets[1].model: no pool serves "d""#);
    refused(
        served(r#"{"rules": [{"model": "c", "has_tools": true}], "default": "b"}"#),
        r#"model_choice.rules[0].model: no pool serves "c""#,
    );
    refused(served(r#"{"rules": [], "default": "c"}"#), r#"model_choice.default: no pool serves "c""#);
    refused(
        served(r#"{"rules": [], "default": "auto"}"#),
        r#"model_choice.default: "auto" is in `applies_to`; a model that a pool serves is needed"#,
    );
    refused(
        served(r#"{"applies_to": ["any", "a"], "rules": [], "default": "b"}"#),
        r#"model_choice.applies_to[1]: a pool has a model named "a" already"#,
    );
    refused(
        served(r#"{"applies_to": [], "rules": [], "default": "b"}"#),
        "model_choice.applies_to: at least one name is needed",
    );
}
