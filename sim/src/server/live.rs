//! An engine driven by the wall clock: virtual time is the time since the start, times `speedup`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::Instant;

use crate::engine::{Engine, Event, EventKind, Prompt, Rejected, Request, RequestId, Stats};
use crate::metrics::{Histograms, LoraSeries};

/// A running engine; clones are handles to the same one.
#[derive(Clone)]
pub(crate) struct LiveEngine {
    inner: Arc<Mutex<Inner>>,
    wake: Arc<Notify>,
    started: Instant,
    speedup: f64,
}

struct Inner {
    engine: Engine,
    streams: HashMap<RequestId, (usize, UnboundedSender<Token>)>,
    next_id: RequestId,
    events: Vec<Event>,
    histograms: Histograms,
    loras: LoraSeries,
    requests: u64,
    prompt_tokens: u64,
    cached_tokens: u64,
    most_in_flight: usize,
}

/// A generated token.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    /// Which prompt of the call it belongs to.
    pub(crate) prompt: usize,
    /// With a prompt's first token: how many of the prompt's tokens were cached.
    pub(crate) cached_tokens: Option<u32>,
}

/// Requests of one call. Dropping it aborts those still going.
pub(crate) struct Generation {
    engine: LiveEngine,
    ids: Vec<RequestId>,
    tokens: UnboundedReceiver<Token>,
}

/// What the metrics pages and the statistics show.
pub(crate) struct Observed {
    pub(crate) stats: Stats,
    pub(crate) histograms: Histograms,
    pub(crate) loras: LoraSeries,
    pub(crate) requests: u64,
    pub(crate) prompt_tokens: u64,
    pub(crate) cached_tokens: u64,
    pub(crate) in_flight: usize,
    pub(crate) most_in_flight: usize,
}

impl LiveEngine {
    /// An idle engine; nothing moves unless [`LiveEngine::drive`] runs.
    pub(crate) fn new(engine: Engine, adapters: Vec<String>, speedup: f64) -> Self {
        let loras = LoraSeries::new(engine.config().max_loras, adapters);
        let inner = Inner {
            engine,
            streams: HashMap::new(),
            next_id: 0,
            events: Vec::new(),
            histograms: Histograms::default(),
            loras,
            requests: 0,
            prompt_tokens: 0,
            cached_tokens: 0,
            most_in_flight: 0,
        };
        let speedup = if speedup.is_finite() && speedup > 0.0 { speedup } else { 1.0 };
        Self { inner: Arc::new(Mutex::new(inner)), wake: Arc::default(), started: Instant::now(), speedup }
    }

    /// Ends steps when they are due, forever.
    pub(crate) async fn drive(self) {
        loop {
            let next = {
                let mut inner = self.advanced();
                inner.engine.next_step_end()
            };
            let woken = self.wake.notified();
            match next {
                Some(end) => {
                    let due = self.started + Duration::from_secs_f64((end / self.speedup).clamp(0.0, 1e9));
                    // A later arrival cannot shorten the step under way.
                    tokio::time::sleep_until(due).await;
                }
                None => woken.await,
            }
        }
    }

    /// Submits one request per prompt, or none if one of them is refused.
    pub(crate) fn submit(
        &self,
        prompts: Vec<Prompt>,
        max_tokens: u32,
        adapter: Option<u32>,
    ) -> Result<Generation, Rejected> {
        let now = self.now();
        let (sender, tokens) = unbounded_channel();
        let mut generation = Generation { engine: self.clone(), ids: Vec::new(), tokens };
        let mut inner = self.advanced();
        for (index, prompt) in prompts.into_iter().enumerate() {
            let id = inner.next_id;
            inner.next_id += 1;
            if let Err(rejected) = inner.engine.submit(now, Request { id, prompt, max_tokens, adapter }) {
                // Its drop takes the lock.
                drop(inner);
                drop(generation);
                return Err(rejected);
            }
            inner.streams.insert(id, (index, sender.clone()));
            inner.requests += 1;
            generation.ids.push(id);
        }
        inner.most_in_flight = inner.most_in_flight.max(inner.engine.in_flight());
        drop(inner);
        self.wake.notify_one();
        Ok(generation)
    }

    /// State as of the last step's end.
    pub(crate) fn observe(&self) -> Observed {
        let inner = self.advanced();
        Observed {
            stats: inner.engine.stats().clone(),
            histograms: inner.histograms.clone(),
            loras: inner.loras.clone(),
            requests: inner.requests,
            prompt_tokens: inner.prompt_tokens,
            cached_tokens: inner.cached_tokens,
            in_flight: inner.engine.in_flight(),
            most_in_flight: inner.most_in_flight,
        }
    }

    /// Empties the cache and zeroes all counters.
    pub(crate) fn reset(&self) {
        let mut inner = self.advanced();
        inner.engine.reset();
        inner.histograms = Histograms::default();
        (inner.requests, inner.prompt_tokens, inner.cached_tokens) = (0, 0, 0);
        inner.most_in_flight = inner.engine.in_flight();
    }

    fn abort(&self, ids: &[RequestId]) {
        let mut inner = self.advanced();
        for id in ids {
            if inner.streams.remove(id).is_some() {
                inner.engine.abort(*id);
            }
        }
    }

    fn now(&self) -> f64 {
        self.started.elapsed().as_secs_f64() * self.speedup
    }

    /// The state with all steps ended that are due.
    fn advanced(&self) -> MutexGuard<'_, Inner> {
        // A panic elsewhere is that request's affair.
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let mut events = std::mem::take(&mut inner.events);
        let (now, now_unix) = (self.now(), unix_time());
        while let Some(end) = inner.engine.next_step_end().filter(|end| *end <= now) {
            inner.engine.advance(end, &mut events);
            events.drain(..).for_each(|event| inner.publish(event, self.speedup));
            let Inner { loras, engine, .. } = &mut *inner;
            loras.update(&engine.stats().adapters, now_unix - (now - end) / self.speedup);
        }
        inner.events = events;
        inner
    }
}

impl Inner {
    fn publish(&mut self, event: Event, speedup: f64) {
        let cached_tokens = match event.kind {
            EventKind::FirstToken { cached_tokens } => Some(cached_tokens),
            EventKind::Token => None,
            EventKind::Preempted => return,
            EventKind::Finished(outcome) => {
                self.streams.remove(&event.id);
                self.prompt_tokens += u64::from(outcome.prompt_tokens);
                self.cached_tokens += u64::from(outcome.cached_tokens);
                self.histograms.record(&outcome, speedup);
                return;
            }
        };
        if let Some((prompt, stream)) = self.streams.get(&event.id) {
            // The receiver is gone only for a moment before its abort comes.
            let _ = stream.send(Token { prompt: *prompt, cached_tokens });
        }
    }
}

impl Generation {
    /// The next token of any of the call's prompts; `None` after the last one.
    pub(crate) async fn next(&mut self) -> Option<Token> {
        self.tokens.recv().await
    }
}

impl Drop for Generation {
    fn drop(&mut self) {
        self.engine.abort(&self.ids);
    }
}

/// Seconds since 1970.
pub(crate) fn unix_time() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}
