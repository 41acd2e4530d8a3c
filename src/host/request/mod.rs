//! One request on its way through the proxy.

mod answer;
mod inbound;
mod rewriting;

use std::rc::Rc;

use log::{debug, error};
use proxy_wasm::traits::{Context, HttpContext};
use proxy_wasm::types::Action;

use self::answer::Placed;
use self::inbound::Inbound;
use self::rewriting::Rewriting;
use super::abi::{self, Buffer, Headers};
use super::pools::Pools;
use super::worker::Worker;
use super::{DESTINATION, PREFILLER};
use crate::config::{Explain, FailureMode};
use crate::health::Readiness;
use crate::picker::{Ask, NoPick, Pick};
use crate::prompt::{Dialect, Prompt};
use crate::reply::Reply;
use crate::session::Home;

/// A request's state.
pub(super) struct Request {
    pools: Option<Rc<Pools>>,
    /// Its headers are held while its prompt is being read, and then no more.
    held: Option<Inbound>,
    /// With the pool that serves it.
    placed: Option<(Rc<Worker>, Placed)>,
    /// It names another model than the client did.
    rewriting: Option<Rewriting>,
}

impl Request {
    pub(super) fn new(pools: Option<Rc<Pools>>) -> Self {
        Self { pools, held: None, placed: None, rewriting: None }
    }

    /// Decides on what has come of the body, which is `whole` bytes long if its end has come.
    fn decide_on_body(&mut self, inbound: Inbound, whole: Option<usize>) -> Action {
        let Some(pools) = self.pools.clone() else { return Action::Continue };
        let Some(any) = pools.fallback() else { return Action::Continue };
        let mut body = inbound.body(any, whole);
        let rewriting = Rewriting::of(&pools, any, &inbound, &mut body);
        let route = match pools.routes.route(&body.bytes) {
            Ok(route) => route,
            Err(unknown) => {
                any.metrics.borrow_mut().unknown_model();
                return reply(&Reply::unknown_model(inbound.dialect, &unknown));
            }
        };
        self.rewriting = rewriting;
        pools.tell(&route);
        let Some(worker) = pools.get(route.pool) else { return Action::Continue };
        let prompt = inbound.prompt(worker, &body);
        self.decide(worker, &inbound, prompt)
    }

    fn decide(&mut self, worker: &Rc<Worker>, inbound: &Inbound, prompt: Option<Prompt>) -> Action {
        if worker.picker.borrow().snapshot_version().is_none() {
            worker.refresh(None);
        }
        let now = abi::now();
        let ask = Ask { prompt: prompt.as_ref(), headers: &inbound.headers, subset: inbound.subset.as_ref() };
        let picked = worker.picker.borrow_mut().pick(&*worker.store, ask, now);
        match picked {
            Ok(Pick { decision, entry, forecast, session }) => {
                debug!("{decision}{}", worker.config.objectives.account(&inbound.headers));
                worker.metrics.borrow_mut().picked();
                if session == Home::Unknown {
                    worker.metrics.borrow_mut().session_unknown();
                }
                let destination = decision.destination().unwrap_or_default();
                let prefiller = decision.prefill.as_ref().map(|prefill| prefill.address.clone());
                if worker.config.disaggregation.is_some() && prompt.is_some() {
                    worker.metrics.borrow_mut().disaggregated(prefiller.is_some());
                }
                // Of embeddings there is nothing to learn, and their answers are long.
                let tells = prompt.is_some() && inbound.dialect != Some(Dialect::Embeddings);
                let chains = prompt.map(|prompt| prompt.chains).unwrap_or_default();
                let explanation = (worker.config.explain == Explain::Header).then(|| decision.to_string());
                let address = decision.ranked.into_iter().next().map(|first| first.address).unwrap_or_default();
                let placed = Placed {
                    address,
                    explanation,
                    entry,
                    forecast,
                    session,
                    chains,
                    tells,
                    streams: false,
                    usage: None,
                    begun: false,
                    ended: false,
                };
                self.placed = Some((worker.clone(), placed));
                let set = |name, value: &str| abi::set_header(Headers::Request, name, value.as_bytes());
                let named = set(DESTINATION, &destination);
                if let Err(status) = named.and_then(|()| prefiller.map_or(Ok(()), |it| set(PREFILLER, &it))) {
                    // The host sent the headers on although they were held.
                    worker.metrics.borrow_mut().too_late();
                    if worker.may_complain(now) {
                        error!("{DESTINATION} was refused ({status:?}): is allow_on_headers_stop_iteration on?");
                    }
                }
                Action::Continue
            }
            Err(why) => {
                debug!("{why}{}", worker.config.objectives.account(&inbound.headers));
                // The proxy's own choice would not keep to the subset, and to let through what was shed would take from those
                // for whom it was.
                let open = worker.config.failure_mode == FailureMode::FailOpen
                    && inbound.subset.is_none()
                    && why != NoPick::Saturated;
                worker.metrics.borrow_mut().not_picked(why, open);
                if open {
                    return Action::Continue;
                }
                // The answer is ours, and names no model.
                self.rewriting = None;
                reply(&Reply::unavailable(inbound.dialect, why))
            }
        }
    }

    /// The stream is gone.
    fn close(&mut self) {
        if let Some((worker, placed)) = self.placed.take() {
            placed.close(&worker);
        }
    }
}

impl Drop for Request {
    // A host that forgets to report the end of a stream must not leave it in the ledger.
    fn drop(&mut self) {
        self.close();
    }
}

impl Context for Request {}

impl HttpContext for Request {
    fn on_http_request_headers(&mut self, _: usize, end_of_stream: bool) -> Action {
        #[cfg(feature = "crash")]
        if abi::header(Headers::Request, "x-crash").is_some() {
            std::process::abort();
        }
        // First of all: a client must not choose the server, whatever happens next.
        let _ = abi::remove_header(Headers::Request, DESTINATION);
        let Some(pools) = self.pools.clone() else { return Action::Continue };
        let Some(worker) = pools.fallback() else { return Action::Continue };
        pools.distrust();
        rewriting::clear(&pools);
        if worker.config.disaggregation.is_some() {
            let _ = abi::remove_header(Headers::Request, PREFILLER);
        }
        let inbound = Inbound::read(worker);
        if inbound.asks_health {
            return health(&pools);
        }
        if !end_of_stream && !inbound.has_prompt() {
            rewriting::passed_by(&pools, worker, &inbound);
        }
        if end_of_stream || !inbound.has_prompt() {
            return self.decide(worker, &inbound, None);
        }
        self.held = Some(inbound);
        Action::Pause
    }

    fn on_http_request_body(&mut self, body_size: usize, end_of_stream: bool) -> Action {
        let Some(inbound) = self.held.take() else { return Action::Continue };
        let any = self.pools.as_ref().and_then(|pools| pools.fallback());
        if end_of_stream || any.is_none_or(|any| body_size >= any.config.request.max_body_bytes) {
            return self.decide_on_body(inbound, end_of_stream.then_some(body_size));
        }
        self.held = Some(inbound);
        Action::Pause
    }

    // A body that ends with trailers has no body call at its end.
    fn on_http_request_trailers(&mut self, _: usize) -> Action {
        match self.held.take() {
            Some(inbound) => self.decide_on_body(inbound, None),
            None => Action::Continue,
        }
    }

    fn on_http_response_headers(&mut self, _: usize, end_of_stream: bool) -> Action {
        let Self { pools, placed, rewriting, .. } = self;
        *placed = placed.take().map(|(worker, placed)| {
            let placed = placed.headers(&worker, end_of_stream);
            (worker, placed)
        });
        if let Some((worker, rewriting)) = pools.as_ref().and_then(|pools| pools.fallback()).zip(rewriting.as_mut()) {
            rewriting.headers(worker, end_of_stream);
        }
        Action::Continue
    }

    fn on_http_response_body(&mut self, body_size: usize, end_of_stream: bool) -> Action {
        let Self { pools, placed, rewriting, .. } = self;
        let reads = placed.as_ref().is_some_and(|(_, placed)| placed.reads())
            || rewriting.as_ref().is_some_and(Rewriting::reads);
        // Once for both.
        let piece = if reads && body_size > 0 { abi::buffer(Buffer::ResponseBody, body_size) } else { None };
        let piece = piece.unwrap_or_default();
        if let Some((worker, placed)) = placed {
            placed.body(worker, body_size, &piece, end_of_stream);
        }
        if let Some((worker, rewriting)) = pools.as_ref().and_then(|pools| pools.fallback()).zip(rewriting.as_mut()) {
            rewriting.body(worker, &piece, end_of_stream);
        }
        Action::Continue
    }

    fn on_http_response_trailers(&mut self, _: usize) -> Action {
        if let Some((_, placed)) = &mut self.placed {
            placed.ended = true;
        }
        Action::Continue
    }

    // Runs whatever ended the stream: its end, either side leaving, a timeout, an answer of ours.
    fn on_log(&mut self) {
        self.close();
    }
}

/// Says whether this worker could pick; of several pools, in any: one whose servers are all gone is no fault of the others.
fn health(pools: &Pools) -> Action {
    let now = abi::now();
    let readiness = |worker: &Rc<Worker>| {
        if worker.picker.borrow().snapshot_version().is_none() {
            worker.refresh(None);
        }
        worker.picker.borrow().readiness(now)
    };
    let ready = pools.workers.iter().find(|worker| matches!(readiness(worker), Readiness::Ready(_)));
    let Some(worker) = ready.or(pools.fallback()) else { return Action::Continue };
    let method = abi::header(Headers::Request, ":method").unwrap_or_default();
    reply(&Reply::readiness(&method, &worker.config.pool.name, readiness(worker)))
}

/// Answers the request in place of a server.
fn reply(Reply { status, details, headers, body }: &Reply) -> Action {
    match abi::local_response(*status, details, headers, body) {
        Ok(()) => Action::Pause,
        Err(_) => Action::Continue,
    }
}
