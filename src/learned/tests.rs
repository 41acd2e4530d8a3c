use super::record::{MAX_ENDPOINTS, MAX_MODELS};
use super::*;
use crate::store::{Found, Memory};

const A: EndpointId = EndpointId(1);
const B: EndpointId = EndpointId(2);
const START: Timestamp = Timestamp(1_796_000_000_000);

mod sharing;
mod speeds;

/// A worker that learns by itself.
fn learner() -> Learner {
    Learner::new("p", true)
}

/// What it has observed becomes what it knows.
fn settle(learner: &mut Learner) {
    learner.updated = Timestamp::default();
    learner.tick(&Memory::default(), &[], START);
}

fn first_token(learner: &mut Learner, endpoint: EndpointId, predicted: f64, observed: f64) {
    learner.observe_first_token(endpoint, predicted, observed, START);
}

fn near(one: f64, other: f64) -> bool {
    (one - other).abs() < 0.02 * other
}

#[test]
fn an_unknown_model_is_expected_to_say_256_tokens_and_never_more_than_asked_for() {
    let learner = learner();
    assert_eq!(learner.expected_output(1, None), 256);
    assert_eq!(learner.expected_output(1, Some(100)), 100);
    assert_eq!(learner.expected_output(1, Some(0)), 0);
}

#[test]
fn the_first_answer_counts_as_much_as_the_prior() {
    let mut learner = learner();
    learner.observe_output(1, 1000, START);
    settle(&mut learner);
    assert_eq!(learner.expected_output(1, None), 638, "256 and 1000 with weights 0.95 and 1");
    assert_eq!(learner.expected_output(2, None), 256, "another model");
}

#[test]
fn new_habits_replace_old_ones() {
    let mut learner = learner();
    (0..1000).for_each(|_| learner.observe_output(1, 2000, START));
    (0..100).for_each(|_| learner.observe_output(1, 50, START));
    settle(&mut learner);
    assert!((50..70).contains(&learner.expected_output(1, None)));
}

#[test]
fn neither_lies_nor_many_names_do_harm() {
    let mut learner = learner();
    for model in 0..10_000 {
        learner.observe_output(model, u32::MAX, START);
        if model % 100 == 0 {
            settle(&mut learner);
        }
    }
    settle(&mut learner);
    assert_eq!(learner.known.models.iter().count(), MAX_MODELS);
    assert!(learner.expected_output(9_999, None) <= MAX_TOKENS);
}

#[test]
fn a_mean_prefill_is_known_after_the_first_request() {
    let mut learner = learner();
    assert_eq!(learner.mean_prefill(), None);
    learner.observe_prefill(f64::NAN);
    learner.observe_prefill(0.25);
    settle(&mut learner);
    assert_eq!(learner.mean_prefill(), Some(0.25));
    (0..1000).for_each(|_| learner.observe_prefill(1.0));
    settle(&mut learner);
    assert!(learner.mean_prefill().is_some_and(|seconds| near(seconds, 1.0)));
}
