use super::*;

const START: u64 = 1_796_000_000_000;

fn at(seconds: u64) -> Timestamp {
    Timestamp(START + 1000 * seconds)
}

/// Puts one observation behind what is known.
fn observe(known: &mut Trouble, failed: bool, now: Timestamp) {
    let mut news = Trouble::default();
    if failed {
        news.failed(1.0, now)
    } else {
        news.succeeded()
    }
    known.then(&news);
}

fn failing() -> Trouble {
    let mut known = Trouble::default();
    (0..3).for_each(|_| observe(&mut known, true, at(0)));
    known
}

#[test]
fn three_failures_close_together_are_several() {
    let mut known = Trouble::default();
    for (second, standing) in [(0, Standing::Sound), (1, Standing::Sound), (2, Standing::Failing)] {
        observe(&mut known, true, at(second));
        assert_eq!(known.standing(at(second)), standing);
    }
}

#[test]
fn failures_far_apart_are_not() {
    let mut known = Trouble::default();
    for minute in 0..100 {
        observe(&mut known, true, at(60 * minute));
        assert_eq!(known.standing(at(60 * minute)), Standing::Sound);
    }
}

#[test]
fn one_failure_in_three_is_not_failing_and_three_in_four_are() {
    let run = |failed: fn(u32) -> bool| {
        let mut known = Trouble::default();
        (0..100)
            .filter(|i| {
                observe(&mut known, failed(*i), at(u64::from(*i)));
                known.is_failing()
            })
            .count()
    };
    assert_eq!(run(|i| i % 3 == 0), 0);
    assert!(run(|i| i % 4 != 0) > 20);
}

#[test]
fn probes_grow_rarer_up_to_one_in_half_a_minute() {
    let (mut known, mut probes) = (failing(), Vec::new());
    for second in 0..130 {
        if known.standing(at(second)) == Standing::Due {
            known.probe(at(second));
            observe(&mut known, true, at(second));
            probes.push(second);
        }
    }
    assert_eq!(probes, [1, 2, 4, 8, 16, 32, 62, 92, 122]);
}

#[test]
fn a_server_at_which_probes_hang_is_probed_no_more_often() {
    let (mut known, mut probes) = (failing(), Vec::new());
    for second in 0..130 {
        if known.standing(at(second)) == Standing::Due {
            known.probe(at(second));
            probes.push(second);
        }
    }
    assert_eq!(probes, [1, 2, 4, 8, 16, 32, 62, 92, 122]);
}

#[test]
fn suspicions_make_no_server_failing_and_no_failing_one_sound() {
    let mut news = Trouble::default();
    (0..100).for_each(|_| news.suspected(0.5, at(0)));
    let (mut suspect, mut failing) = (Trouble::default(), failing());
    for known in [&mut suspect, &mut failing] {
        known.then(&news);
    }
    assert_eq!(suspect.standing(at(0)), Standing::Sound);
    assert_eq!(failing.standing(at(0)), Standing::Failing);
    observe(&mut suspect, true, at(1));
    assert_eq!(suspect.standing(at(1)), Standing::Failing, "now one of them was seen");
}

#[test]
fn one_success_restores_and_the_next_failure_soon_after_is_one_too_many() {
    let mut known = failing();
    (0..100).for_each(|_| observe(&mut known, true, at(1)));
    assert_eq!(known.standing(at(1)), Standing::Due);
    observe(&mut known, false, at(1));
    assert_eq!(known.standing(at(1)), Standing::Sound);
    observe(&mut known, true, at(2));
    assert_eq!(known.standing(at(2)), Standing::Failing);
}

#[test]
fn the_order_within_a_batch_counts() {
    let mut known = failing();
    let mut news = Trouble::default();
    (0..30).for_each(|_| news.failed(1.0, at(1)));
    news.succeeded();
    known.then(&news);
    assert_eq!(known.standing(at(1)), Standing::Sound, "it answered last");
}

#[test]
fn batches_one_after_the_other_are_the_same_as_all_at_once() {
    let outcomes = [true, true, true, true, true, true, false, true, false, false, true, true, true];
    let mut once = Trouble::default();
    outcomes.iter().for_each(|failed| observe(&mut once, *failed, at(1)));
    for cut in 0..=outcomes.len() {
        let mut known = Trouble::default();
        for batch in [&outcomes[..cut], &outcomes[cut..]] {
            let mut news = Trouble::default();
            batch.iter().for_each(|failed| if *failed { news.failed(1.0, at(1)) } else { news.succeeded() });
            known.then(&news);
        }
        assert!((known.sum - once.sum).abs() < 1e-4, "{cut}: {known:?} {once:?}");
    }
}

#[test]
fn a_clock_that_steps_back_keeps_no_probe_away_and_lets_no_herd_in() {
    let (mut known, hour_ago) = (failing(), Timestamp(START - 3_600_000));
    assert_eq!(known.standing(hour_ago), Standing::Due);
    known.probe(hour_ago);
    assert_eq!(known.standing(hour_ago), Standing::Failing);
}

#[test]
fn what_is_written_is_what_is_read() {
    let (known, mut bytes) = (failing(), Vec::new());
    known.write(&mut bytes);
    assert_eq!(Trouble::read(&mut bytes.as_slice()), Some(known));
    (0..bytes.len()).for_each(|end| assert_eq!(Trouble::read(&mut &bytes[..end]), None));
}
