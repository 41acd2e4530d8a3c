//! A thread that has not the time to read every server once an interval, in virtual time.

use std::collections::VecDeque;

use super::*;

/// Microseconds from a call to the arrival of its answer.
const LATENCY: u64 = 1_000;
/// Microseconds of the thread for a call out.
const CALL: u64 = 20;
/// Microseconds between ticks.
const TICK: u64 = 20_000;
const SECOND: u64 = 1_000_000;

#[derive(Default)]
struct Course {
    /// When each endpoint was read, in microseconds.
    reads: Vec<Vec<u64>>,
    /// Reports that an endpoint is unreachable.
    lost: usize,
    /// The thread's time spent on answers.
    busy: u64,
}

impl Course {
    /// The longest time without a reading of any of `endpoints`.
    fn longest_gap(&self, endpoints: std::ops::Range<usize>, end: u64) -> u64 {
        let gap = |reads: &Vec<u64>| {
            let mut times = vec![0];
            times.extend(reads);
            times.push(end);
            times.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).max().unwrap()
        };
        self.reads[endpoints].iter().map(gap).max().unwrap()
    }
}

/// The first of a queue, if it is there already.
fn arrived<T>(queue: &mut VecDeque<T>, is_here: impl Fn(&T) -> bool) -> Option<T> {
    queue.front().is_some_and(is_here).then(|| queue.pop_front())?
}

/// Each answer costs the thread `cost` microseconds. A timer that has run out comes before answers that have arrived. The
/// first `silent` endpoints never answer; the proxy then does so at the deadline, if its thread has not done so before.
fn run(endpoints: usize, cost: u64, silent: usize, end: u64) -> Course {
    let mut collector = Collector::new(targets(endpoints), &scrape(), 9, at(0));
    let timeout = u64::try_from(collector.timeout().as_micros()).unwrap();
    let mut course = Course { reads: vec![Vec::new(); endpoints], ..Course::default() };
    let mut answers: VecDeque<(u64, usize, u32)> = VecDeque::new();
    let mut timeouts: VecDeque<(u64, u32)> = VecDeque::new();
    let (mut now, mut next_tick, mut calls) = (0, 0, 0);
    while now < end {
        let clock = |now| at(now / 1_000);
        if now >= next_tick {
            course.lost +=
                collector.expire(clock(now)).iter().filter(|b| b.turned == Some(Health::Unreachable)).count();
            for endpoint in collector.due(clock(now)).into_iter().map(|(endpoint, _)| endpoint).collect::<Vec<_>>() {
                now += CALL;
                collector.started(endpoint, calls, clock(now));
                match endpoint < silent {
                    true => timeouts.push_back((now + timeout, calls)),
                    false => answers.push_back((now + LATENCY, endpoint, calls)),
                }
                calls += 1;
            }
            next_tick = now.max(next_tick + TICK);
        } else if let Some((_, endpoint, call)) = arrived(&mut answers, |answer| answer.0 <= now) {
            now += cost;
            course.busy += cost;
            let booked = collector.answered(call, whole(TEXT), clock(now));
            if booked.is_some_and(|booked| booked.outcome == Outcome::Read) {
                course.reads[endpoint].push(now);
            }
        } else if let Some((_, call)) = arrived(&mut timeouts, |timeout| timeout.0 <= now) {
            let booked = collector.answered(call, failed(504), clock(now));
            course.lost += usize::from(booked.is_some_and(|booked| booked.turned == Some(Health::Unreachable)));
        } else {
            let next = [answers.front().map(|a| a.0), timeouts.front().map(|t| t.0)].into_iter().flatten();
            now = next.fold(next_tick, u64::min);
        }
    }
    course
}

#[test]
fn servers_are_not_dead_because_the_scraper_is_slow() {
    for (endpoints, cost, at_least_every) in [
        (100, 400, SECOND / 5),
        (400, 400, SECOND / 2),
        (1_000, 170, SECOND),
        (1_000, 400, SECOND),
        // As fast as the thread can.
        (1_000, 2_000, 3 * SECOND),
        (100, 10_000, 3 * SECOND),
        (1_000, 5_000, 7 * SECOND),
    ] {
        let end = 2 * at_least_every + SECOND;
        let course = run(endpoints, cost, 0, end);
        let gap = course.longest_gap(0..endpoints, end);
        let share = 100 * course.busy / end;
        println!("{endpoints} endpoints, {cost} us an answer: read every {} ms, {share} % of the thread", gap / 1_000);
        assert_eq!(course.lost, 0, "{endpoints} endpoints, {cost} us: taken for dead");
        assert!(gap <= at_least_every, "{endpoints} endpoints, {cost} us: not read for {gap} us");
    }
}

#[test]
fn a_scraper_with_time_to_spare_keeps_to_the_interval() {
    let course = run(200, 170, 0, 5 * SECOND);
    assert!(course.reads.iter().all(|reads| (49..=51).contains(&reads.len())));
}

#[test]
fn dead_servers_do_not_slow_the_scrapes_of_the_others() {
    let end = 5 * SECOND;
    let course = run(1_000, 170, 500, end);
    assert_eq!(course.lost, 500);
    let gap = course.longest_gap(500..1_000, end);
    assert!(gap <= SECOND, "not read for {gap} us");
}
