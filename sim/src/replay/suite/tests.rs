use std::path::Path;

use super::row::Check;
use super::rows::Results;
use super::scenarios::*;
use super::*;
use crate::replay::experiment::Trial;
use crate::replay::report::Summary;
use crate::replay::rules::RuleKind;

fn outcome(scenario: &str, trial: Trial, mean: Summary) -> Outcome {
    Outcome { scenario: scenario.into(), trial, mean, seeds: vec![mean] }
}

fn row(outcomes: &[Outcome], missing: &[Missing], name: &str) -> Row {
    let rows = Results { outcomes, missing }.rows();
    rows.into_iter().find(|row| row.name == name).unwrap()
}

#[test]
fn a_row_holds_if_all_its_checks_do() {
    let row = |checks| Row { name: String::new(), checks, skipped: None };
    let (good, bad) = (Check::at_most("TTFT", 0.8, 0.86), Check::above("goodput", 0.5, 0.5));
    assert_eq!(row(vec![good.clone()]).verdict(), Verdict::Passed);
    let failed = row(vec![good, bad]);
    assert_eq!(failed.verdict(), Verdict::Failed);
    assert_eq!(failed.to_string(), "TTFT 0.800 <= 0.860; goodput 0.500 > 0.500 (!)");
}

#[test]
fn ours_is_compared_with_the_best_of_the_others() {
    let e2e = |e2e_mean| Summary { e2e_mean, ..Summary::default() };
    let others = [(RuleKind::RoundRobin, 50.0), (RuleKind::Sticky, 20.0)];
    let mut outcomes: Vec<_> =
        others.map(|(rule, seconds)| outcome(CHAT, Trial::of(rule), e2e(seconds))).into_iter().collect();
    outcomes.push(outcome(CHAT, Trial::of(OURS), e2e(20.5)));
    assert_eq!(row(&outcomes, &[], CHAT).verdict(), Verdict::Passed);

    outcomes.push(outcome(CHAT, Trial::of(RuleKind::Lmetric), e2e(19.0)));
    assert_eq!(row(&outcomes, &[], CHAT).verdict(), Verdict::Failed);
}

#[test]
fn without_traces_their_rows_are_skipped_with_the_reason() {
    let (found, missing) = scenarios(Path::new("/nonexistent"));
    assert!(found.iter().all(|scenario| !scenario.name.starts_with("conversation")));
    let row = row(&[], &missing, CONVERSATION);
    assert_eq!(row.verdict(), Verdict::Skipped);
    assert_eq!(
        row.to_string(),
        "no mooncake_conversation_trace.jsonl or mooncake_conversation_trace.jsonl.gz in /nonexistent"
    );
}

#[test]
fn a_quick_suite_tries_fewer_rules_and_never_fewer_promises() {
    for scenario in [CONVERSATION, SHARED_PREFIX, REASONING, ONE_BEGINNING] {
        let (quick, whole) = (trials(scenario, true), trials(scenario, false));
        assert!(quick.iter().all(|trial| whole.contains(trial)), "{scenario}");
        let ours = |trials: &[Trial]| trials.iter().filter(|trial| trial.rule == OURS).count();
        assert_eq!(ours(&quick), ours(&whole), "{scenario}");
    }
}
