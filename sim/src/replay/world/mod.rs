//! A fleet behind a router, in virtual time.
//!
//! Calls arrive, a router places each at once, the network takes a moment, the engine does its work in steps, and first
//! tokens and ends come back. The routers know of the engines only what came back and what scrapes showed: gauges as of
//! the last step's end, read every so often, each engine at a phase of its own.
//!
//! A proxy has several workers, and a call belongs to the worker that accepted it. Which of them share what they know is
//! the routers' business: see [`rules`](super::rules).

mod queue;
#[cfg(test)]
mod tests;

use rand::RngExt;
use rand_pcg::Pcg64;
use rand_pcg::rand_core::SeedableRng;

use super::router::{Gauges, Router};
use super::trace::{Call, Start, Workload};
use crate::engine::{self, Engine, EventKind, Outcome};

use queue::{Queue, What};

/// Seconds between two ticks of a worker, as in the product.
const TICK: f64 = 0.02;

/// The fleet and what lies between it and the clients.
#[derive(Clone, Debug)]
pub struct World {
    /// One for each engine.
    pub engines: Vec<engine::Config>,
    /// Seconds from a router to an engine, and back.
    pub network: f64,
    /// Seconds between two scrapes of an engine.
    pub scrape: f64,
    /// How connections, and with them calls, are spread over the workers.
    pub deal: Deal,
    /// Of the scrapes' phases and of [`Deal::Random`].
    pub seed: u64,
}

/// How calls are spread over workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deal {
    /// In turn.
    RoundRobin,
    /// At random, as a kernel spreads connections.
    Random,
}

/// What became of a call; times are a client's, in seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Served {
    /// The call's place in the workload.
    pub call: usize,
    /// The engine that served it.
    pub engine: usize,
    /// When it reached the router.
    pub arrived: f64,
    /// When its first token was back at the router.
    pub first_token: f64,
    /// When its last token was.
    pub finished: f64,
    /// What the engine says of it; `None`: it did not take it, because prompt and answer are longer than its context.
    pub outcome: Option<Outcome>,
}

impl World {
    /// These engines, 1 ms away, scraped every 100 ms.
    pub fn new(engines: Vec<engine::Config>, seed: u64) -> Self {
        Self { engines, network: 1e-3, scrape: 0.1, deal: Deal::Random, seed }
    }

    /// Serves `workload`, each call by one of `routers`, at least one. In the order in which the calls ended.
    pub fn replay(&self, workload: &Workload, routers: &mut [Box<dyn Router>]) -> Vec<Served> {
        Replay::new(self, workload, routers).run()
    }
}

struct Replay<'a> {
    world: &'a World,
    calls: &'a [Call],
    routers: &'a mut [Box<dyn Router>],
    engines: Vec<Simulated>,
    /// The call that each call is followed by, and the pause before.
    followers: Vec<Option<(usize, f64)>>,
    progress: Vec<Option<Progress>>,
    queue: Queue,
    random: Pcg64,
    arrived: usize,
    served: Vec<Served>,
}

/// An engine and when it is to be looked at next.
struct Simulated {
    engine: Engine,
    wakes: Option<f64>,
}

/// A call under way.
struct Progress {
    worker: usize,
    engine: usize,
    arrived: f64,
    first_token: f64,
    outcome: Option<Outcome>,
}

impl<'a> Replay<'a> {
    fn new(world: &'a World, workload: &'a Workload, routers: &'a mut [Box<dyn Router>]) -> Self {
        let mut random = Pcg64::seed_from_u64(world.seed);
        let mut queue = Queue::default();
        let mut followers = vec![None; workload.calls.len()];
        for (place, call) in workload.calls.iter().enumerate() {
            match call.start {
                Start::At(at) => queue.push(at, What::Arrived { call: place }),
                Start::After { call, pause } => {
                    if let Some(follower) = followers.get_mut(call) {
                        *follower = Some((place, pause));
                    }
                }
            }
        }
        for engine in 0..world.engines.len() {
            queue.push(world.scrape * random.random::<f64>(), What::Scraped { engine });
        }
        queue.push(0.0, What::Tick);
        let engines = world.engines.iter().map(|c| Simulated { engine: Engine::new(c.clone()), wakes: None });
        Self {
            calls: &workload.calls,
            engines: engines.collect(),
            followers,
            progress: workload.calls.iter().map(|_| None).collect(),
            queue,
            random,
            arrived: 0,
            served: Vec::with_capacity(workload.calls.len()),
            world,
            routers,
        }
    }

    fn run(mut self) -> Vec<Served> {
        let mut events = Vec::new();
        while self.served.len() < self.calls.len() {
            let Some((now, what)) = self.queue.pop() else { break };
            match what {
                What::Arrived { call } => self.arrived(now, call),
                What::Submitted { call } => self.submitted(now, call),
                What::Step { engine } => self.step(now, engine, &mut events),
                What::Scraped { engine } => self.scraped(now, engine),
                What::Tick => self.tick(now),
                What::FirstToken { call } => self.first_token(now, call),
                What::Finished { call } => self.finished(now, call),
            }
        }
        self.served
    }

    fn arrived(&mut self, now: f64, place: usize) {
        let worker = match self.world.deal {
            Deal::RoundRobin => self.arrived % self.routers.len().max(1),
            Deal::Random => self.random.random_range(0..self.routers.len().max(1)),
        };
        self.arrived += 1;
        let (Some(call), Some(router)) = (self.calls.get(place), self.routers.get_mut(worker)) else { return };
        let engine = router.route(place, call, now);
        if let Some(progress) = self.progress.get_mut(place) {
            *progress = Some(Progress { worker, engine, arrived: now, first_token: now, outcome: None });
        }
        self.queue.push(now + self.world.network, What::Submitted { call: place });
    }

    fn submitted(&mut self, now: f64, place: usize) {
        let (Some(call), Some(progress)) = (self.calls.get(place), self.progress(place)) else { return };
        let engine = progress.engine;
        let Some(simulated) = self.engines.get_mut(engine) else { return };
        let request =
            engine::Request { id: place as u64, prompt: call.engine.clone(), max_tokens: call.output, adapter: None };
        match simulated.engine.submit(now, request) {
            Ok(()) if simulated.wakes.is_none() => {
                simulated.wakes = Some(now);
                self.queue.push(now, What::Step { engine });
            }
            Ok(()) => {}
            Err(_) => self.queue.push(now + self.world.network, What::Finished { call: place }),
        }
    }

    fn step(&mut self, now: f64, place: usize, events: &mut Vec<engine::Event>) {
        let Some(simulated) = self.engines.get_mut(place) else { return };
        simulated.engine.advance(now, events);
        simulated.wakes = simulated.engine.next_step_end();
        if let Some(at) = simulated.wakes {
            self.queue.push(at, What::Step { engine: place });
        }
        for event in events.drain(..) {
            let (call, back) = (event.id as usize, event.at + self.world.network);
            match event.kind {
                EventKind::FirstToken { .. } => self.queue.push(back, What::FirstToken { call }),
                EventKind::Finished(outcome) => {
                    if let Some(progress) = self.progress(call) {
                        progress.outcome = Some(outcome);
                    }
                    self.queue.push(back, What::Finished { call });
                }
                EventKind::Token | EventKind::Preempted => {}
            }
        }
    }

    fn scraped(&mut self, now: f64, place: usize) {
        let Some(simulated) = self.engines.get(place) else { return };
        let gauges = Gauges::of(simulated.engine.stats(), now);
        self.routers.iter_mut().for_each(|router| router.scraped(place, &gauges));
        self.queue.push(now + self.world.scrape, What::Scraped { engine: place });
    }

    fn tick(&mut self, now: f64) {
        self.routers.iter_mut().for_each(|router| router.tick(now));
        self.queue.push(now + TICK, What::Tick);
    }

    fn first_token(&mut self, now: f64, place: usize) {
        let Some(progress) = self.progress(place) else { return };
        progress.first_token = now;
        let worker = progress.worker;
        if let Some(router) = self.routers.get_mut(worker) {
            router.first_token(place, now);
        }
    }

    fn finished(&mut self, now: f64, place: usize) {
        let Some(progress) = self.progress.get_mut(place).and_then(Option::take) else { return };
        let Progress { worker, engine, arrived, first_token, outcome } = progress;
        if let Some(router) = self.routers.get_mut(worker) {
            router.finished(place, outcome.as_ref(), now);
        }
        if let Some((call, pause)) = self.followers.get(place).copied().flatten() {
            self.queue.push(now + pause, What::Arrived { call });
        }
        self.served.push(Served { call: place, engine, arrived, first_token, finished: now, outcome });
    }

    fn progress(&mut self, call: usize) -> Option<&mut Progress> {
        self.progress.get_mut(call).and_then(Option::as_mut)
    }
}
