use super::*;

/// An answer to a prompt of 1,000 tokens.
fn told(cached: u32) -> Usage {
    Usage { prompt_tokens: Some(1000), cached_tokens: Some(cached), output_tokens: Some(10), events: 10 }
}

/// The first 80 of a prompt of 100 blocks are believed to be held, the last of them of this age.
fn belief(age: u32, capacity: u32) -> Belief {
    Belief { held: 80, age, noted: 80, capacity, prompt: 100.0, grain: 1, ..Belief::default() }
}

/// A cache that holds `real` blocks, and a worker that assumes `assumed`.
struct Cache {
    known: Correction,
    real: u32,
    assumed: u32,
    told: bool,
    random: u64,
}

impl Cache {
    fn new(real: u32, assumed: u32, told: bool) -> Self {
        Self { known: Correction::default(), real, assumed, told, random: 88_172_645_463_325_252 }
    }

    fn capacity(&self) -> u32 {
        self.known.capacity(self.assumed, self.told)
    }

    fn learn(&mut self, belief: &Belief, usage: &Usage) -> Option<u64> {
        let mut news = Correction::default();
        let aged = news.learn(&self.known, belief, usage);
        self.known.then(&news);
        aged
    }

    /// An answer to a prompt last seen some time up to `oldest` ago, if it goes there.
    fn answer(&mut self, oldest: u32) {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let (age, capacity) = ((self.random % u64::from(oldest)) as u32, self.capacity());
        let held = if age < capacity { 80 } else { 0 };
        // What is not believed to be there goes anywhere.
        if held > 0 || self.random.is_multiple_of(8) {
            let usage = told(if age < self.real { 800 } else { 0 });
            self.learn(&Belief { held, told: self.told, ..belief(age, capacity) }, &usage);
        }
    }
}

fn near(one: u32, other: u32) -> bool {
    one.abs_diff(other) * 10 < other * 4
}

#[test]
fn a_cache_smaller_than_told_is_found_out() {
    let mut cache = Cache::new(2_000, 8_000, true);
    (0..400).for_each(|_| cache.answer(8_000));
    assert!(near(cache.capacity(), 2_000), "{}", cache.capacity());
}

#[test]
fn a_cache_larger_than_assumed_is_found_out_unless_the_server_tells() {
    let mut cache = Cache::new(8_000, 2_000, false);
    (0..2_000).for_each(|_| cache.answer(16_000));
    assert!(near(cache.capacity(), 8_000), "{}", cache.capacity());

    let mut cache = Cache::new(8_000, 2_000, true);
    (0..2_000).for_each(|_| cache.answer(16_000));
    assert_eq!(cache.capacity(), 2_000, "a server cannot hold more than it has");
}

#[test]
fn a_cache_of_the_size_told_stays_as_it_is() {
    for told in [true, false] {
        let mut cache = Cache::new(4_000, 4_000, told);
        for _ in 0..2_000 {
            cache.answer(8_000);
            assert!(near(cache.capacity(), 4_000), "{}", cache.capacity());
        }
    }
}

#[test]
fn success_is_not_saved_up_against_a_cache_that_became_smaller() {
    let mut cache = Cache::new(4_000, 4_000, true);
    (0..2_000).for_each(|_| cache.answer(4_000));
    (0..60).for_each(|_| _ = cache.learn(&Belief { told: true, ..belief(3_000, 4_000) }, &told(0)));
    assert!(cache.capacity() < 1_000, "{}", cache.capacity());
}

#[test]
fn the_capacity_never_leaves_its_bounds() {
    let mut cache = Cache::new(0, 64_000, true);
    (0..5_000).for_each(|_| _ = cache.learn(&belief(50_000, 64_000), &told(10)));
    assert!(near(cache.capacity(), 1_000), "{}", cache.capacity());
    (0..5_000).for_each(|_| _ = cache.learn(&Belief { noted: 100, held: 0, ..belief(0, 1_000) }, &told(1000)));
    assert_eq!(cache.capacity(), 64_000);
    assert!(near(cache.known.capacity(64_000, false), 16 * 64_000));
    assert_eq!(cache.known.capacity(u32::MAX, false), u32::MAX);
}

#[test]
fn what_was_young_or_still_being_computed_says_nothing_of_the_size() {
    let mut cache = Cache::new(0, 4_000, true);
    (0..100).for_each(|_| _ = cache.learn(&belief(500, 4_000), &told(100)));
    let pending = Belief { pending: 2_000, ..belief(3_000, 4_000) };
    (0..100).for_each(|_| assert_eq!(cache.learn(&pending, &told(0)), None));
    assert_eq!(cache.capacity(), 4_000);
}

#[test]
fn what_was_missing_moves_the_clock_on_as_new_blocks_do() {
    let mut cache = Cache::new(0, 4_000, true);
    // 70 blocks counted a quarter each.
    assert_eq!(cache.learn(&belief(1_000, 4_000), &told(100)), Some((70.0 * 0.75 * 65536.0) as u64));
    assert_eq!(cache.learn(&belief(1_000, 4_000), &told(800)), None);
}

#[test]
fn an_emptied_cache_is_soon_believed_in_again() {
    let mut cache = Cache::new(4_000, 4_000, true);
    (0..500).for_each(|_| cache.answer(4_000));
    for age in (0..4_000).step_by(100) {
        cache.learn(&Belief { told: true, ..belief(age, cache.capacity()) }, &told(0));
    }
    assert!(cache.capacity() > 500, "{}", cache.capacity());
    (0..1_000).for_each(|_| cache.answer(4_000));
    assert!(near(cache.capacity(), 4_000), "{}", cache.capacity());
}

#[test]
fn a_server_that_caches_nothing_is_believed_to_until_it_says_otherwise() {
    let mut cache = Cache::new(0, 4_000, true);
    (0..15).for_each(|_| _ = cache.learn(&belief(79, 4_000), &told(0)));
    assert_eq!(cache.capacity(), 4_000);
    cache.learn(&belief(79, 4_000), &told(0));
    assert_eq!(cache.capacity(), 0);
    // Nothing is believed now, and the answers stay as they are.
    let nothing = Belief { held: 0, age: 0, noted: 0, ..belief(0, 0) };
    for _ in 0..1_000 {
        cache.learn(&nothing, &told(0));
        assert_eq!(cache.capacity(), 0, "it does not flap");
    }
    cache.learn(&nothing, &told(16));
    assert_eq!(cache.capacity(), 4_000);
}

#[test]
fn a_server_that_is_known_to_cache_is_not_given_up_for_a_series_of_misses() {
    let mut cache = Cache::new(0, 4_000, true);
    (0..8).for_each(|_| _ = cache.learn(&belief(79, 4_000), &told(800)));
    (0..79).for_each(|_| _ = cache.learn(&belief(79, 4_000), &told(0)));
    assert_eq!(cache.capacity(), 4_000);
    cache.learn(&belief(79, 4_000), &told(0));
    assert_eq!(cache.capacity(), 0);
}

#[test]
fn what_is_not_told_or_cannot_be_changes_nothing() {
    let mut cache = Cache::new(0, 4_000, false);
    let usage = told(0);
    let nonsense = [
        Usage { cached_tokens: None, ..usage },
        Usage { prompt_tokens: None, ..usage },
        Usage { prompt_tokens: Some(0), ..usage },
        told(1_001),
        told(u32::MAX),
        Usage::default(),
    ];
    for usage in nonsense {
        (0..100).for_each(|_| assert_eq!(cache.learn(&belief(3_000, 4_000), &usage), None));
    }
    assert_eq!(cache.known, Correction::default());
}

#[test]
fn neither_a_denser_tail_nor_the_last_block_of_an_engine_is_a_miss() {
    let mut cache = Cache::new(0, 4_000, false);
    // The head was taken for 80 % of the prompt and is 60 %.
    (0..100).for_each(|_| assert_eq!(cache.learn(&belief(3_000, 4_000), &told(600)), None));
    // Of 15 of our blocks an engine with blocks of four caches the first 12 or none.
    for prompt in 4..=15 {
        let belief = Belief { held: prompt, noted: prompt, prompt: prompt as f32, grain: 4, ..belief(3_000, 4_000) };
        assert_eq!(cache.learn(&belief, &told(0)), None, "{prompt} blocks");
    }
    assert_eq!(cache.capacity(), 4_000);
}

#[test]
fn what_workers_learned_is_the_sum_of_what_each_did() {
    let answers =
        [(3_000, 0), (3_500, 800), (100, 0), (2_500, 100), (3_900, 800)].map(|(age, cached)| (age, told(cached)));
    let mut one = Cache::new(0, 4_000, false);
    answers.iter().for_each(|(age, usage)| _ = one.learn(&belief(*age, 4_000), usage));

    let mut all = Correction::default();
    for share in answers.chunks(2) {
        let mut news = Correction::default();
        share.iter().for_each(|(age, usage)| _ = news.learn(&Correction::default(), &belief(*age, 4_000), usage));
        all.then(&Correction::from_bytes(news.to_bytes()));
    }
    assert_eq!(all, one.known);
}

#[test]
fn many_workers_together_do_not_drive_a_capacity_down_because_the_server_began_to_tell_it() {
    let mut cache = Cache::new(16_000, 4_000, false);
    (0..60).for_each(|_| _ = cache.learn(&Belief { noted: 100, held: 0, ..belief(0, 4_000) }, &told(1000)));
    assert!(cache.capacity() > 8_000, "{}", cache.capacity());
    cache.told = true;
    for _ in 0..8 {
        let news = [(); 16].map(|()| {
            let mut news = Correction::default();
            news.learn(&cache.known, &Belief { told: true, ..belief(3_000, 4_000) }, &told(800));
            news
        });
        news.iter().for_each(|news| cache.known.then(news));
        assert_eq!(cache.capacity(), 4_000);
    }
}
