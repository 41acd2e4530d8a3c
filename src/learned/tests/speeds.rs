//! How fast endpoints are.

use super::*;

fn speed(learner: &mut Learner, endpoint: EndpointId) -> Speed {
    settle(learner);
    learner.speed(endpoint)
}

/// Predictions between 0.1 and 2 s, in no order.
fn predictions(count: u32) -> impl Iterator<Item = f64> {
    (0..count).map(|i| f64::from(i * 7 % 20 + 1) / 10.0)
}

#[test]
fn the_slope_of_a_known_line_by_hand() {
    let mut learner = learner();
    first_token(&mut learner, A, 1.0, 3.0);
    assert_eq!(speed(&mut learner, A).prefill, 1.0, "one point has no slope");
    first_token(&mut learner, A, 2.0, 5.0);
    // n = 1.98, means 1.505051 and 4.010101, variance 0.249974, covariance 0.499949: the line has slope 2.
    // The fleet: 30/n = 15.1515, weight 4.545455 variances, (2 + 4.545455) / 5.545455 = 1.180328.
    // The endpoint: the same weight, (2 + 4.545455 · 1.180328) / 5.545455 = 1.328138.
    assert!((speed(&mut learner, B).prefill - 1.180_328).abs() < 1e-5);
    assert!((speed(&mut learner, A).prefill - 1.328_138).abs() < 1e-5);
}

#[test]
fn a_slow_endpoint_is_found_and_the_others_stay_as_they_are() {
    let mut learner = learner();
    for x in predictions(400) {
        for endpoint in 1..=7 {
            first_token(&mut learner, EndpointId(endpoint), x, 0.03 + x);
        }
        first_token(&mut learner, EndpointId(8), x, 0.03 + 2.0 * x);
    }
    let fleet = speed(&mut learner, EndpointId(99)).prefill;
    assert!(near(fleet, 9.0 / 8.0), "{fleet}");
    // Drawn to the fleet with 0.3.
    assert!(near(speed(&mut learner, EndpointId(8)).prefill, (2.0 + 0.3 * fleet) / 1.3));
    assert!(near(speed(&mut learner, EndpointId(1)).prefill, (1.0 + 0.3 * fleet) / 1.3));
}

#[test]
fn a_constant_delay_is_not_slowness() {
    let mut learner = learner();
    predictions(300).for_each(|x| first_token(&mut learner, A, x / 100.0, 0.2 + x / 100.0));
    assert!(near(speed(&mut learner, A).prefill, 1.0), "a mean of ratios would say 20 or more");
}

#[test]
fn requests_that_are_all_alike_say_nothing() {
    let mut learner = learner();
    for _ in 0..300 {
        first_token(&mut learner, A, 0.3, 2.0);
    }
    assert_eq!(speed(&mut learner, A).prefill, 1.0);
}

#[test]
fn a_fleet_ten_times_slower_than_nominal_is_learned() {
    let mut learner = learner();
    predictions(500).for_each(|x| first_token(&mut learner, A, x, 10.0 * x));
    predictions(500).for_each(|_| learner.observe_decode(A, 0.02, 0.2, START));
    let fresh = speed(&mut learner, B);
    assert!((8.0..10.0).contains(&fresh.prefill) && near(fresh.decode, 10.0), "a new endpoint is no faster: {fresh:?}");
}

#[test]
fn an_endpoint_stays_within_three_times_the_fleet() {
    let mut learner = learner();
    for x in predictions(400) {
        for endpoint in 1..=20 {
            first_token(&mut learner, EndpointId(endpoint), x, x);
        }
        first_token(&mut learner, A, x, 100.0 * x);
        first_token(&mut learner, B, x, 100.0 - 40.0 * x);
    }
    let fleet = speed(&mut learner, EndpointId(99)).prefill;
    assert!((speed(&mut learner, A).prefill - 3.0 * fleet).abs() < 1e-9);
    assert!((speed(&mut learner, B).prefill - fleet / 3.0).abs() < 1e-9, "even a line that falls");
}

#[test]
fn the_pace_of_decoding_is_a_moving_mean_drawn_to_the_fleets() {
    let mut learner = learner();
    learner.observe_decode(A, 0.02, 0.04, START);
    // A 33rd of the way from 1 to 2.
    assert!((speed(&mut learner, B).decode - 1.03).abs() < 1e-12);
    assert!((speed(&mut learner, A).decode - (0.97 * 1.03 + 0.03 * 2.0)).abs() < 1e-12);
    (0..300).for_each(|_| learner.observe_decode(A, 0.02, 0.04, START));
    assert!(near(speed(&mut learner, A).decode, 2.0));
}

#[test]
fn a_private_ledger_learns_nothing() {
    let mut learner = Learner::new("p", false);
    predictions(100).for_each(|x| first_token(&mut learner, A, x, 5.0 * x));
    learner.observe_decode(A, 0.02, 0.2, START);
    assert_eq!(speed(&mut learner, A), Speed::default());
}

#[test]
fn no_observation_breaks_it() {
    let mut learner = learner();
    let odd = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, 0.0, f64::MIN_POSITIVE, f64::MAX, 1e-300, 1.0, 1e9];
    for _ in 0..20 {
        for (x, y) in odd.into_iter().flat_map(|x| odd.map(|y| (x, y))) {
            first_token(&mut learner, A, x, y);
            learner.observe_decode(A, x, y, START);
            for speed in [A, B].map(|endpoint| speed(&mut learner, endpoint)) {
                assert!((0.01..=100.0).contains(&speed.prefill), "{speed:?} after {x}, {y}");
                assert!((0.01..=100.0).contains(&speed.decode), "{speed:?} after {x}, {y}");
            }
        }
    }
}

#[test]
fn endpoints_that_come_and_go_do_not_pile_up() {
    let mut learner = learner();
    for id in 0..5000 {
        learner.observe_decode(EndpointId(id), 0.02, 0.04, START);
        if id % 100 == 0 {
            settle(&mut learner);
        }
    }
    settle(&mut learner);
    assert_eq!(learner.speeds.len(), MAX_ENDPOINTS);
}
