//! When to scrape which server.
//!
//! Each endpoint has a place in the interval of its own, so that scrapes are spread evenly and keep their distance. The
//! proxy may call late, not at all for a while, or with a clock that stepped back: then a turn is left out, never made
//! up for. An answer that does not come cannot stop the scrapes: the deadline is kept here, not by the host alone.
//!
//! One thread reads all answers. What it cannot read within the interval must not pile up in front of it, so only so many
//! calls are started that it can be behind with a few; when they are, everyone's turn comes later, in rotation.

use std::time::Duration;

use crate::clock::Timestamp;

/// Answers that may be waiting for the thread. At half a millisecond each they keep it from other work for 32 ms.
const MAX_BACKLOG: usize = 64;

/// Several ticks of the host, so that a deadline can pass unnoticed only if ticks are late.
const LEAST_TIMEOUT: Duration = Duration::from_millis(100);

/// The turns of all endpoints. Call [`expired`](Self::expired), then [`due`](Self::due), on every tick.
#[derive(Clone, Debug)]
pub struct Poller {
    /// Milliseconds, at least 1.
    interval: u64,
    timeout: Duration,
    endpoints: Vec<Turn>,
    /// The first to be asked when not all can be.
    first: usize,
    /// When the newest call began that was answered. What began before and has no answer waits for its server, not for
    /// this thread.
    caught_up: Timestamp,
    ticked: Timestamp,
    /// A call was answered since.
    answered: bool,
}

#[derive(Clone, Copy, Debug)]
struct Turn {
    next: Timestamp,
    under_way: Option<Call>,
    /// The call given up last. Its answer may have come and wait for the thread.
    given_up: Option<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Call {
    id: u32,
    started: Timestamp,
}

impl Poller {
    /// Turns for `count` endpoints, the first at once and the last just within `interval`, which is at least 1 ms.
    /// `patience` is how long an answer is worth waiting for.
    pub fn new(count: usize, interval: Duration, patience: Duration, now: Timestamp) -> Self {
        let timeout = patience.max(interval.saturating_add(interval / 2)).max(LEAST_TIMEOUT);
        let interval = u64::try_from(interval.as_millis()).unwrap_or(u64::MAX).max(1);
        let share = |i: usize| Duration::from_millis((interval as f64 * i as f64 / count as f64) as u64);
        let turn = |i| Turn { next: now.plus(share(i)), under_way: None, given_up: None };
        let endpoints = (0..count).map(turn).collect();
        Self { interval, timeout, endpoints, first: 0, caught_up: now, ticked: now, answered: false }
    }

    /// One more endpoint, behind the others. Its place in the interval is away from those of the others who joined, however
    /// many they are.
    pub fn add(&mut self, now: Timestamp) {
        // Multiples of the golden ratio fill a circle evenly.
        let place = (self.endpoints.len() as f64 * 0.618_034).fract();
        let share = Duration::from_millis((self.interval as f64 * place) as u64);
        self.endpoints.push(Turn { next: now.plus(share), under_way: None, given_up: None });
    }

    /// The endpoint at this place is gone, and those behind it move up. An answer to its call is unknown.
    pub fn remove(&mut self, endpoint: usize) {
        if endpoint < self.endpoints.len() {
            self.endpoints.remove(endpoint);
        }
    }

    /// How long a call may take: `patience`, and at least one and a half intervals.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// The endpoints to scrape now, each at most once and none that has a call under way. An endpoint whose call cannot
    /// be started has its next turn an interval later.
    pub fn due(&mut self, now: Timestamp) -> Vec<usize> {
        self.caught_up = self.caught_up.min(now);
        let under_way = self.endpoints.iter().filter_map(|turn| turn.under_way);
        let backlog = under_way.filter(|call| call.started >= self.caught_up).count();
        let (interval, count, first) = (self.interval, self.endpoints.len(), self.first);
        let mut due = Vec::new();
        for endpoint in (first..count).chain(0..first.min(count)) {
            let Some(turn) = self.endpoints.get_mut(endpoint) else { continue };
            let ahead = turn.next.0.saturating_sub(now.0);
            if ahead > interval {
                // The clock stepped back. The place in the interval stays.
                turn.next = Timestamp(now.0.saturating_add(ahead % interval));
            }
            if turn.under_way.is_none() && turn.next <= now {
                if backlog + due.len() >= MAX_BACKLOG {
                    self.first = endpoint;
                    break;
                }
                let late = now.0 - turn.next.0;
                turn.next = Timestamp(now.0.saturating_add(interval - late % interval));
                due.push(endpoint);
            }
        }
        due
    }

    /// The host took the call for `endpoint` and will answer under the id `call`.
    pub fn started(&mut self, endpoint: usize, call: u32, now: Timestamp) {
        if let Some(turn) = self.endpoints.get_mut(endpoint) {
            turn.under_way = Some(Call { id: call, started: now });
        }
    }

    /// An answer came, to this call or another's. Whether it is one of those under way or given up.
    pub fn expects(&mut self, call: u32) -> bool {
        self.answered = true;
        let of = |turn: &Turn| turn.under_way.as_ref().is_some_and(|way| way.id == call) || turn.given_up == Some(call);
        self.endpoints.iter().any(of)
    }

    /// Which endpoint this call was for, well or badly ended. `None` if it is unknown or has expired.
    pub fn finished(&mut self, call: u32) -> Option<usize> {
        self.answered = true;
        for (endpoint, turn) in self.endpoints.iter_mut().enumerate() {
            if let Some(call) = turn.under_way.take_if(|under_way| under_way.id == call) {
                turn.given_up = None;
                self.caught_up = self.caught_up.max(call.started);
                return Some(endpoint);
            }
        }
        None
    }

    /// Which endpoint this call was for that expired and is answered after all. `None` if it is unknown, or a later call
    /// has been answered or given up since.
    pub fn finished_late(&mut self, call: u32) -> Option<usize> {
        self.endpoints.iter_mut().position(|turn| turn.given_up.take_if(|given_up| *given_up == call).is_some())
    }

    /// The endpoints whose call has outlived the timeout, or began in the future because the clock stepped back. After a
    /// tick that was late itself there are none: their answers may have come and wait for the thread, as this tick did.
    pub fn expired(&mut self, now: Timestamp) -> Vec<usize> {
        let late = now.since(self.ticked) > self.timeout / 2;
        if !self.answered && now > self.ticked {
            // Between two ticks the thread reads what it has.
            self.caught_up = now;
        }
        (self.ticked, self.answered) = (now, false);
        let over = |call: &mut Call| call.started > now || !late && now.since(call.started) >= self.timeout;
        let turns = self.endpoints.iter_mut().enumerate();
        let expired = turns.filter_map(|(endpoint, turn)| {
            turn.given_up = Some(turn.under_way.take_if(over)?.id);
            Some(endpoint)
        });
        expired.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_millis(100);

    fn at(ms: u64) -> Timestamp {
        Timestamp(1_000_000 + ms)
    }

    /// Ticks every 10 ms and lets `answer` say after how many ms a call to an endpoint ends. Gives the starts.
    fn run(poller: &mut Poller, until: u64, answer: impl Fn(usize) -> Option<u64>) -> Vec<(u64, usize)> {
        let mut starts = Vec::new();
        let mut calls: Vec<(u64, u32)> = Vec::new();
        for now in (0..until).step_by(10) {
            for (_, call) in calls.extract_if(.., |(end, _)| *end <= now) {
                poller.finished(call);
            }
            poller.expired(at(now));
            for endpoint in poller.due(at(now)) {
                let call = starts.len() as u32;
                poller.started(endpoint, call, at(now));
                starts.push((now, endpoint));
                calls.extend(answer(endpoint).map(|after| (now + after, call)));
            }
        }
        starts
    }

    fn starts_of(starts: &[(u64, usize)], endpoint: usize) -> Vec<u64> {
        starts.iter().filter(|start| start.1 == endpoint).map(|start| start.0).collect()
    }

    #[test]
    fn every_endpoint_has_one_turn_an_interval_and_turns_are_spread_evenly() {
        let starts = run(&mut Poller::new(5, INTERVAL, Duration::ZERO, at(0)), 1_000, |_| Some(10));
        assert_eq!(starts.len(), 50);
        for endpoint in 0..5 {
            let expected: Vec<_> = (0..10).map(|turn| turn * 100 + 20 * endpoint as u64).collect();
            assert_eq!(starts_of(&starts, endpoint), expected);
        }
    }

    #[test]
    fn a_slow_endpoint_never_has_two_calls_and_does_not_slow_the_others() {
        let starts =
            run(&mut Poller::new(2, INTERVAL, Duration::ZERO, at(0)), 1_000, |i| Some(if i == 0 { 130 } else { 10 }));
        assert!(starts_of(&starts, 0).windows(2).all(|pair| pair[1] - pair[0] >= 130));
        assert_eq!(starts_of(&starts, 1).len(), 10);
    }

    #[test]
    fn a_host_that_never_answers_cannot_stop_the_scrapes() {
        let mut poller = Poller::new(1, INTERVAL, Duration::ZERO, at(0));
        assert!(poller.timeout() < 2 * INTERVAL);
        assert_eq!(run(&mut poller, 1_000, |_| None).len(), 7, "one every 150 ms");
    }

    #[test]
    fn an_expired_call_is_told_once_and_its_late_answer_is_known() {
        let mut poller = Poller::new(1, INTERVAL, Duration::ZERO, at(0));
        assert_eq!(poller.due(at(0)), [0]);
        poller.started(0, 7, at(0));
        assert!((0..150).step_by(10).all(|tick| poller.expired(at(tick)).is_empty()));
        assert_eq!(poller.expired(at(150)), [0]);
        assert!(poller.expired(at(150)).is_empty());
        assert_eq!(poller.finished(7), None);
        assert_eq!(poller.finished_late(7), Some(0));
        assert_eq!(poller.finished_late(7), None);
    }

    #[test]
    fn a_late_answer_is_no_news_after_a_later_one() {
        let mut poller = Poller::new(1, INTERVAL, Duration::ZERO, at(0));
        poller.started(0, 7, at(0));
        assert_eq!((0..=150).step_by(10).flat_map(|tick| poller.expired(at(tick))).collect::<Vec<_>>(), [0]);
        poller.started(0, 8, at(150));
        assert_eq!(poller.finished(8), Some(0));
        assert_eq!(poller.finished_late(7), None);
    }

    #[test]
    fn after_a_tick_that_came_late_answers_get_time_to_be_read() {
        let mut poller = Poller::new(1, INTERVAL, Duration::ZERO, at(0));
        poller.started(0, 7, at(0));
        assert!(poller.expired(at(5_000)).is_empty(), "the thread was busy, perhaps the server was not");
        assert_eq!(poller.expired(at(5_020)), [0]);
    }

    #[test]
    fn answers_cannot_pile_up_in_front_of_the_thread() {
        let mut poller = Poller::new(200, INTERVAL, Duration::ZERO, at(0));
        let mut asked = Vec::new();
        for round in 0..4 {
            let due = poller.due(at(100 + round));
            assert!(due.len() <= MAX_BACKLOG);
            for endpoint in &due {
                poller.started(*endpoint, *endpoint as u32, at(100 + round));
            }
            assert!(poller.due(at(100 + round)).is_empty(), "none has been answered");
            for endpoint in &due {
                poller.finished(*endpoint as u32);
            }
            asked.extend(due);
        }
        assert!((0..200).all(|endpoint| asked.contains(&endpoint)), "everyone has a turn before anyone has two");
    }

    #[test]
    fn servers_that_do_not_answer_take_no_place_from_those_that_do() {
        let silent = |endpoint| endpoint < 100;
        let mut poller = Poller::new(200, INTERVAL, Duration::from_secs(1), at(0));
        let starts = run(&mut poller, 2_000, |endpoint| (!silent(endpoint)).then_some(10));
        for endpoint in (0..200).filter(|endpoint| !silent(*endpoint)) {
            assert!(starts_of(&starts, endpoint).len() >= 18, "{:?}", starts_of(&starts, endpoint));
        }
    }

    #[test]
    fn an_answer_is_booked_to_the_endpoint_that_was_asked() {
        let mut poller = Poller::new(3, INTERVAL, Duration::ZERO, at(0));
        poller.started(2, 11, at(0));
        poller.started(0, 12, at(0));
        assert_eq!(poller.finished(99), None);
        assert_eq!(poller.finished(11), Some(2));
        assert_eq!(poller.finished(11), None);
        assert_eq!(poller.finished(12), Some(0));
    }

    #[test]
    fn after_a_pause_each_endpoint_is_scraped_once_and_keeps_its_place() {
        let mut poller = Poller::new(4, INTERVAL, Duration::ZERO, at(0));
        poller.due(at(99));
        let hour = 3_600_000;
        assert_eq!(poller.due(at(hour)), [0, 1, 2, 3]);
        assert!(poller.due(at(hour + 1)).is_empty());
        assert_eq!(poller.due(at(hour + 25)), [1]);
        assert_eq!(poller.due(at(hour + 50)), [2]);
    }

    #[test]
    fn a_clock_that_steps_back_does_not_stop_the_scrapes() {
        let mut poller = Poller::new(2, INTERVAL, Duration::ZERO, at(500_000));
        assert_eq!(poller.due(at(500_000)), [0]);
        poller.started(0, 1, at(500_000));
        assert_eq!(poller.expired(at(0)), [0]);
        assert_eq!((0..10).map(|tick| poller.due(at(tick * 10)).len()).sum::<usize>(), 2);
    }

    #[test]
    fn a_call_that_could_not_be_started_is_tried_again_an_interval_later() {
        let mut poller = Poller::new(1, INTERVAL, Duration::ZERO, at(0));
        assert_eq!(poller.due(at(0)), [0]);
        assert!(poller.due(at(99)).is_empty());
        assert_eq!(poller.due(at(100)), [0]);
    }

    #[test]
    fn who_joins_has_a_place_of_its_own_and_who_leaves_is_forgotten() {
        let mut poller = Poller::new(0, INTERVAL, Duration::ZERO, at(0));
        (0..10).for_each(|_| poller.add(at(0)));
        let starts = run(&mut poller, 1_000, |_| Some(10));
        assert!(starts.len() >= 99, "{}", starts.len());
        let at_once = |time: u64| starts.iter().filter(|start| start.0 == time).count();
        assert!((0..1_000).step_by(10).all(|time| at_once(time) <= 2), "{starts:?}");

        poller.started(1, 11, at(1_000));
        poller.started(2, 12, at(1_000));
        poller.remove(1);
        poller.remove(99);
        assert_eq!(poller.finished(11), None);
        assert_eq!(poller.finished(12), Some(1), "it moved up");
    }

    #[test]
    fn odd_sizes_are_harmless() {
        assert!(Poller::new(0, INTERVAL, Duration::ZERO, at(0)).due(at(0)).is_empty());
        let mut poller = Poller::new(2, Duration::ZERO, Duration::ZERO, at(0));
        assert_eq!(poller.due(at(0)), [0, 1]);
        let mut poller = Poller::new(2, Duration::MAX, Duration::MAX, at(0));
        assert_eq!(poller.due(at(0)), [0]);
        poller.started(9, 1, at(0));
        assert_eq!(poller.finished(1), None);
    }
}
