use super::*;

const WORK: Work = Work { prompt_tokens: 8000, cached_tokens: 6000, output_tokens: 300, loads_adapter: false };

fn busy() -> Load {
    Load {
        wait_seconds: 1.0,
        requests: 10,
        prefilling: 2,
        context_tokens: 100_000,
        kv_tokens: 100_000,
        ..Load::default()
    }
}

fn of(load: Load, work: Work) -> Terms {
    with(&Knobs::default(), load, work)
}

fn with(knobs: &Knobs, load: Load, work: Work) -> Terms {
    estimate(&Constants::default(), knobs, &Speed::default(), &load, &work)
}

/// Equal to a figure worked out by hand to six digits.
#[track_caller]
fn assert_near(one: f64, other: f64) {
    assert!((one - other).abs() <= 2e-6 * other.abs().max(0.1), "{one} is not {other}");
}

// P = 0.012/2 + 41e-6·2000 + 1.5e-9·2000·(6000 + 1000) = 0.006 + 0.082 + 0.021 = 0.109
// step = 0.012 + 41e-6·10 + 56e-9·100000 = 0.01801; Down = 300·0.01801 = 5.403
// Dext = 0.5·300·(41e-6 + 56e-9·(8000 + 150))·(10 - 2) = 0.59688
#[test]
fn every_term_by_hand() {
    let terms = of(busy(), WORK);
    assert_near(terms.wait, 1.0 * (1.0 + 0.1 * 0.109));
    assert_eq!(terms.memory_wait, 0.0);
    assert_near(terms.prefill, 2.0 * 0.109);
    assert_near(terms.stall, 0.1 * 10.0 * 0.109);
    assert_near(terms.slowdown_of_me, 0.1 * 5.403);
    assert_near(terms.slowdown_of_others, 0.1 * 0.59688);
    assert_near(terms.total, 1.937_888);
    assert_near(Constants::default().prefill_seconds(WORK), 0.109);
    assert_near(Constants::default().decode_step_seconds(10.0, 100_000.0), 0.01801);
}

#[test]
fn the_default_constants_read_8192_tokens_in_the_published_time() {
    let work = Work { prompt_tokens: 8192, ..Work::default() };
    assert!((Constants::default().prefill_seconds(work) - 0.40).abs() < 0.01);
}

#[test]
fn a_full_memory_makes_a_request_wait_for_others_to_end() {
    // 100000 + 2000 + 300 - 98000 = 4300 tokens too many, 0.043 of those there; 0.043 · 5.403 = 0.232329.
    let full = Load { wait_seconds: 0.0, capacity_tokens: Some(100_000), ..busy() };
    let terms = of(full, WORK);
    assert_eq!(terms.wait, 0.0);
    assert_near(terms.memory_wait, 0.232_329 * 1.0109);
    // A queue that takes longer hides it; one that takes less long is part of it.
    assert_eq!(of(Load { wait_seconds: 1.0, ..full }, WORK).memory_wait, 0.0);
    let both = of(Load { wait_seconds: 0.1, ..full }, WORK);
    assert_near(both.wait + both.memory_wait, 0.232_329 * 1.0109);
    // However little room there is, all will have ended after one residence.
    assert_near(of(Load { capacity_tokens: Some(1), ..full }, WORK).memory_wait, 5.403 * 1.0109);
    assert_eq!(of(Load { capacity_tokens: Some(1), ..Load::default() }, WORK).memory_wait, 0.0, "nobody to wait for");
}

#[test]
fn an_adapter_to_load_costs_its_loading_and_tells_the_learner_nothing() {
    let work = Work { loads_adapter: true, ..WORK };
    assert_near(of(busy(), work).total, of(busy(), WORK).total + 0.05);
    let first_token = |work| nominal_first_token(&Constants::default(), &Speed::default(), &busy(), &work);
    assert_eq!(first_token(work), first_token(WORK));
}

#[test]
fn a_slow_endpoint_costs_more_in_what_it_is_slow_at() {
    let of = |prefill, decode, step| {
        estimate(&Constants::default(), &Knobs::default(), &Speed { prefill, decode, step }, &busy(), &WORK)
    };
    let slow = of(2.0, 3.0, 1.5);
    // The wait is in real seconds as it is; only the aversion to it grows.
    assert_near(slow.wait, 1.0 + 0.1 * 0.218);
    assert_near(slow.prefill, 2.0 * 0.218);
    assert_near(slow.stall, 0.1 * 10.0 * 0.218);
    assert_near(slow.slowdown_of_me, 0.1 * 16.209);
    assert_near(slow.slowdown_of_others, 0.1 * 0.89532);
    for odd in [f64::NAN, f64::INFINITY, -1.0, 0.0] {
        assert_eq!(of(odd, odd, odd), of(1.0, 1.0, 1.0), "a speed of {odd}");
    }
}

#[test]
fn the_knob_goes_from_the_first_token_to_the_whole_answer() {
    let first = with(&Knobs::for_latency_goal(0.0), busy(), WORK);
    assert_eq!((first.stall, first.slowdown_of_me, first.slowdown_of_others), (0.0, 0.0, 0.0));
    assert_near(first.total, 1.0109 + 0.218);
    let whole = with(&Knobs::for_latency_goal(1.0), busy(), WORK);
    assert_near(whole.slowdown_of_me + whole.slowdown_of_others + whole.stall, 5.403 + 0.59688 + 1.09);
    assert_eq!(Knobs::for_latency_goal(0.1), Knobs::default());
    assert_eq!(Knobs::for_latency_goal(f64::NAN), Knobs::default());
    assert_eq!(Knobs::for_latency_goal(7.0), Knobs::for_latency_goal(1.0));
}

#[test]
fn each_term_can_be_left_out_and_nothing_else_changes() {
    type Switch = fn(&mut Switches) -> &mut bool;
    type Term = fn(&mut Terms) -> &mut f64;
    let terms: [(Switch, Term); 7] = [
        (|s| &mut s.wait, |t| &mut t.wait),
        (|s| &mut s.memory_wait, |t| &mut t.memory_wait),
        (|s| &mut s.prefill, |t| &mut t.prefill),
        (|s| &mut s.stall, |t| &mut t.stall),
        (|s| &mut s.slowdown_of_me, |t| &mut t.slowdown_of_me),
        (|s| &mut s.slowdown_of_others, |t| &mut t.slowdown_of_others),
        (|s| &mut s.adapter, |t| &mut t.adapter),
    ];
    // No adapter and no room for the request either, or there would be nothing to leave out.
    let work = Work { loads_adapter: true, ..WORK };
    let load = Load { wait_seconds: 0.1, capacity_tokens: Some(100_000), ..busy() };
    for (place, (switch, term)) in terms.into_iter().enumerate() {
        let mut knobs = Knobs::default();
        *switch(&mut knobs.terms) = false;
        let (mut without, mut all) = (with(&knobs, load, work), of(load, work));
        assert!(*term(&mut all) > 0.0 && *term(&mut without) == 0.0, "term {place}");
        assert!(without.total < all.total || place == 0, "term {place}");
        for other in (0..7).filter(|other| *other != place) {
            let other_term = terms[other].1;
            // Without the queue, the wait for memory is all the wait there is.
            let grows = (place, other) == (0, 1);
            assert_eq!(*other_term(&mut without) == *other_term(&mut all), !grows, "term {other} without {place}");
        }
    }
}

#[test]
fn the_whole_reads_as_a_sum() {
    let terms = Terms { wait: 1.2, prefill: 0.31, slowdown_of_me: 0.04, stall: 0.0004, ..Terms::default() };
    assert_eq!(terms.to_string(), "wait 1.200 s + prefill 0.310 s + slowdown 0.040 s");
    assert_eq!(Terms::default().to_string(), "nothing");
}

#[test]
fn foreign_requests_count_as_the_own_ones_do() {
    let own = Load { requests: 10, prefilling: 3, context_tokens: 100_000, kv_tokens: 100_000, ..Load::default() };
    let foreign = Load {
        foreign_requests: Some(10),
        foreign_waiting: Some(3),
        foreign_kv_tokens: Some(100_000),
        mean_prefill_seconds: Some(0.2),
        ..Load::default()
    };
    let (own, foreign) = (of(own, WORK), of(foreign, WORK));
    assert_near(foreign.wait, 3.0 * 0.2 * 1.0109);
    assert_eq!(Terms { wait: 0.0, total: 0.0, ..foreign }, Terms { wait: 0.0, total: 0.0, ..own });
}

#[test]
fn missing_clock_leaves_the_foreign_queue() {
    let load = Load { foreign_waiting: Some(2), mean_prefill_seconds: Some(0.5), ..Load::default() };
    assert_near(of(load, WORK).wait, 1.0 * 1.0109);
    assert_eq!(of(Load::default(), WORK).wait, 0.0);
}

#[test]
fn missing_foreign_requests_leave_the_own_ledger() {
    assert_eq!(
        of(Load { foreign_requests: None, ..busy() }, WORK),
        of(Load { foreign_requests: Some(0), ..busy() }, WORK)
    );
    let more_waiting_than_there_are = Load { foreign_requests: None, foreign_waiting: Some(4), ..busy() };
    let consistent = Load { foreign_requests: Some(4), ..more_waiting_than_there_are };
    assert_eq!(of(more_waiting_than_there_are, WORK), of(consistent, WORK));
}

#[test]
fn missing_foreign_waiting_takes_them_for_streams() {
    let load = Load { foreign_requests: Some(5), ..busy() };
    assert_eq!(of(load, WORK).wait, of(busy(), WORK).wait);
    assert_near(of(load, WORK).slowdown_of_others, 0.1 * 0.59688 / 8.0 * 13.0);
}

#[test]
fn missing_mean_prefill_takes_this_request_for_the_mean() {
    // P without a cache: 0.006 + 41e-6·8000 + 1.5e-9·8000·4000 = 0.382.
    let load = Load { foreign_waiting: Some(2), ..Load::default() };
    assert_near(of(load, WORK).wait, 2.0 * 0.382 * 1.0109);
}

#[test]
fn missing_foreign_context_leaves_the_own() {
    let load = Load { foreign_requests: Some(1), ..busy() };
    assert_eq!(of(load, WORK), of(Load { foreign_kv_tokens: Some(0), ..load }, WORK));
}

#[test]
fn missing_capacity_means_memory_is_never_full() {
    for capacity_tokens in [None, Some(0)] {
        let load = Load { kv_tokens: u32::MAX, capacity_tokens, ..busy() };
        assert_eq!(of(load, WORK).memory_wait, 0.0);
    }
}

#[test]
fn a_prompt_that_was_not_read_leaves_waits_and_streams() {
    let unread = Work { output_tokens: 256, ..Work::default() };
    assert_near(of(busy(), unread).prefill, 2.0 * 0.006);
    let idle = Load::default();
    assert!(of(idle, unread).total < of(busy(), unread).total);
}

#[test]
fn without_output_there_is_no_slowdown() {
    let embedding = Work { output_tokens: 0, ..WORK };
    let terms = of(Load { capacity_tokens: Some(1), ..busy() }, embedding);
    assert_eq!((terms.memory_wait, terms.slowdown_of_me, terms.slowdown_of_others), (0.0, 0.0, 0.0));
}

#[test]
fn contradictions_count_as_the_nearest_that_is_none() {
    let cached = |cached_tokens| of(busy(), Work { cached_tokens, ..WORK });
    assert_eq!(cached(9000), cached(8000));
    let prefilling = Load { prefilling: 12, ..busy() };
    assert_eq!(of(prefilling, WORK), of(Load { requests: 12, ..prefilling }, WORK));
}

#[test]
fn the_learner_is_told_seconds_at_speed_one() {
    let load = Load { foreign_waiting: Some(2), mean_prefill_seconds: Some(0.5), ..busy() };
    let seconds =
        |prefill| nominal_first_token(&Constants::default(), &Speed { prefill, ..Speed::default() }, &load, &WORK);
    assert_near(seconds(1.0), 1.0 + 1.0 + 0.109);
    assert_near(seconds(2.0), 0.5 + 1.0 + 0.109);
    assert_near(seconds(f64::NAN), seconds(1.0));
}

/// Random inputs, now and then with extremes.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % u64::from(limit)) as u32
    }

    fn tokens(&mut self) -> u32 {
        match self.below(12) {
            0 => 0,
            1 => u32::MAX,
            _ => self.below(200_000),
        }
    }

    fn seconds(&mut self) -> f64 {
        let odd = [0.0, -1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, 1e-300];
        match self.below(8) {
            0 => odd[self.below(7) as usize],
            _ => f64::from(self.below(10_000)) / 1000.0,
        }
    }

    fn count(&mut self) -> u32 {
        if self.below(20) == 0 { u32::MAX } else { self.below(300) }
    }

    fn maybe<T>(&mut self, value: impl FnOnce(&mut Self) -> T) -> Option<T> {
        (self.below(3) > 0).then(|| value(self))
    }

    fn load(&mut self) -> Load {
        Load {
            wait_seconds: self.seconds(),
            requests: self.count(),
            prefilling: self.count(),
            context_tokens: self.tokens(),
            kv_tokens: self.tokens(),
            foreign_requests: self.maybe(Self::count),
            foreign_waiting: self.maybe(Self::count),
            foreign_kv_tokens: self.maybe(Self::tokens),
            capacity_tokens: self.maybe(Self::tokens),
            mean_prefill_seconds: self.maybe(Self::seconds),
        }
    }

    fn work(&mut self) -> Work {
        Work {
            prompt_tokens: self.tokens(),
            cached_tokens: self.tokens(),
            output_tokens: self.tokens(),
            loads_adapter: self.below(2) > 0,
        }
    }

    fn case(&mut self) -> (Constants, Knobs, Speed, Load, Work) {
        let constants = if self.below(4) > 0 {
            Constants::default()
        } else {
            Constants {
                step_seconds: self.seconds(),
                per_token: self.seconds(),
                per_pair: self.seconds(),
                per_kv_token: self.seconds(),
                adapter_seconds: self.seconds(),
            }
        };
        let knobs = Knobs {
            alpha: self.seconds(),
            lambda: self.seconds(),
            theta: self.seconds(),
            mu: self.seconds(),
            terms: Switches::default(),
        };
        let speed = Speed { prefill: self.seconds(), decode: self.seconds(), step: self.seconds() };
        (constants, knobs, speed, self.load(), self.work())
    }
}

#[test]
fn whatever_comes_in_a_sum_of_finite_seconds_comes_out() {
    let mut random = Random(1);
    for _ in 0..20_000 {
        let (constants, knobs, speed, load, work) = random.case();
        let terms = estimate(&constants, &knobs, &speed, &load, &work);
        let Terms { wait, memory_wait, prefill, stall, slowdown_of_me, slowdown_of_others, adapter, total } = terms;
        let all = [wait, memory_wait, prefill, stall, slowdown_of_me, slowdown_of_others, adapter];
        for term in all.into_iter().chain([total, nominal_first_token(&constants, &speed, &load, &work)]) {
            assert!((0.0..=6e9).contains(&term), "{terms:?} of {constants:?} {knobs:?} {speed:?} {load:?} {work:?}");
        }
        assert_eq!(all.into_iter().sum::<f64>(), total);
    }
}

#[test]
fn more_work_and_more_load_never_cost_less_and_more_cache_never_costs_more() {
    type Change = fn(&mut Load, &mut Work, u32);
    let dearer: [(&str, Change); 11] = [
        ("adapters", |_, work, _| work.loads_adapter = true),
        ("prompt", |_, work, more| work.prompt_tokens = work.prompt_tokens.saturating_add(more)),
        ("output", |_, work, more| work.output_tokens = work.output_tokens.saturating_add(more)),
        ("wait", |load, _, more| load.wait_seconds += f64::from(more) / 1000.0),
        ("streams", |load, _, more| load.requests = load.requests.max(load.prefilling).saturating_add(more)),
        ("prefilling", |load, _, more| {
            let more = more.min(u32::MAX - load.requests.max(load.prefilling));
            load.requests = load.requests.max(load.prefilling) + more;
            load.prefilling += more;
        }),
        ("context", |load, _, more| load.context_tokens = load.context_tokens.saturating_add(more)),
        ("memory", |load, _, more| load.kv_tokens = load.kv_tokens.saturating_add(more)),
        ("foreign streams", |load, _, more| {
            load.foreign_requests = load.foreign_requests.max(load.foreign_waiting).map(|n| n.saturating_add(more));
        }),
        ("foreign waiting", |load, _, more| {
            let all = load.foreign_requests.max(load.foreign_waiting).unwrap_or(0);
            let more = more.min(u32::MAX - all);
            load.foreign_requests = Some(all + more);
            load.foreign_waiting = Some(load.foreign_waiting.unwrap_or(0) + more);
        }),
        ("foreign context", |load, _, more| {
            load.foreign_kv_tokens = load.foreign_kv_tokens.map(|n| n.saturating_add(more));
        }),
    ];
    let mut random = Random(2);
    for round in 0..20_000 {
        let (constants, knobs, speed, load, work) = random.case();
        let cost = |load: &Load, work: &Work| estimate(&constants, &knobs, &speed, load, work).total;
        let before = cost(&load, &work);
        // Rounding, nothing more.
        let tolerance = 1e-9 * before;
        let more = random.below(5000);
        let (what, change) = dearer[round % dearer.len()];
        let (mut changed, mut changed_work) = (load, work);
        change(&mut changed, &mut changed_work, more);
        assert!(cost(&changed, &changed_work) >= before - tolerance, "{more} {what} more: {load:?} {work:?}");

        let cached = Work { cached_tokens: work.cached_tokens.saturating_add(more), ..work };
        assert!(cost(&load, &cached) <= before + tolerance, "{more} cached more: {load:?} {work:?}");
    }
}
