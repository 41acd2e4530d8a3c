use super::*;
use crate::replay::rules::RuleKind;
use crate::replay::trace::SharedPrefix;
use serde_json::json;

fn plan(threads: usize) -> Plan {
    let work = |rate| {
        let small = SharedPrefix { groups: 8, output: 20, rate, requests: 80, ..SharedPrefix::default() };
        Work::SharedPrefix(small)
    };
    let rules = [RuleKind::LeastRequest, RuleKind::Sticky, RuleKind::Picker];
    Plan {
        scenarios: vec![Scenario::new("slow", work(4.0), 2, 60_000), Scenario::new("fast", work(8.0), 2, 60_000)],
        trials: rules.into_iter().flat_map(|rule| [(0, Trial::of(rule)), (1, Trial::of(rule))]).collect(),
        seeds: 2,
        threads,
    }
}

#[test]
fn results_do_not_depend_on_threads() {
    let [one, three] = [1, 3].map(|threads| serde_json::to_string(&plan(threads).run(|_, _| {}).unwrap()).unwrap());
    assert_eq!(one, three);
}

#[test]
fn outcomes_are_in_the_order_of_trials_and_are_means_of_seeds() {
    let outcomes = plan(2).run(|_, _| {}).unwrap();
    let names: Vec<_> = outcomes.iter().map(|outcome| (outcome.scenario.as_str(), outcome.trial.rule)).collect();
    assert_eq!(names[..2], [("slow", RuleKind::LeastRequest), ("fast", RuleKind::LeastRequest)]);
    for outcome in &outcomes {
        let [a, b] = &outcome.seeds[..] else { panic!() };
        assert_ne!(a, b, "seeds differ");
        assert_eq!(outcome.mean.ttft_mean, (a.ttft_mean + b.ttft_mean) / 2.0);
    }
}

#[test]
fn a_configuration_that_the_picker_refuses_ends_the_plan_with_its_place() {
    let mut plan = plan(1);
    plan.scenarios[0].config.insert("profile".into(), json!({ "picker": { "type": "best" } }));
    let error = plan.run(|_, _| {}).unwrap_err();
    assert!(error.to_string().contains("profile.picker.type"), "{error}");
}

#[test]
fn a_trial_says_how_it_differs_from_the_usual() {
    let usual = Trial::of(RuleKind::EppDefault);
    assert_eq!(usual.to_string(), "epp-default");
    let other = Trial { scrape: std::time::Duration::from_secs(1), workers: 4, shared: false, ..usual };
    assert_eq!(other.to_string(), "epp-default@1s, 4 workers alone");
}
