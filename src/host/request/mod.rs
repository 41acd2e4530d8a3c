//! One request on its way through the proxy.

mod answer;
mod inbound;

use std::rc::Rc;

use log::{debug, error};
use proxy_wasm::traits::{Context, HttpContext};
use proxy_wasm::types::Action;

use self::answer::Placed;
use self::inbound::Inbound;
use super::DESTINATION;
use super::abi::{self, Headers};
use super::worker::Worker;
use crate::config::{Explain, FailureMode};
use crate::picker::{Ask, NoPick, Pick};
use crate::prompt::{Dialect, Prompt};
use crate::reply::Reply;

/// A request's state.
pub(super) struct Request {
    worker: Option<Rc<Worker>>,
    /// Its headers are held while its prompt is being read, and then no more.
    held: Option<Inbound>,
    placed: Option<Placed>,
}

impl Request {
    pub(super) fn new(worker: Option<Rc<Worker>>) -> Self {
        Self { worker, held: None, placed: None }
    }

    /// Decides on what has come of the body, which is `whole` bytes long if its end has come.
    fn decide_on_body(&mut self, inbound: Inbound, whole: Option<usize>) -> Action {
        let Some(worker) = self.worker.clone() else { return Action::Continue };
        let prompt = inbound.prompt(&worker, whole);
        self.decide(&worker, &inbound, prompt)
    }

    fn decide(&mut self, worker: &Worker, inbound: &Inbound, prompt: Option<Prompt>) -> Action {
        if worker.picker.borrow().snapshot_version().is_none() {
            worker.refresh(None);
        }
        let now = abi::now();
        let ask = Ask { prompt: prompt.as_ref(), headers: &inbound.headers };
        let picked = worker.picker.borrow_mut().pick(&*worker.store, ask, now);
        match picked {
            Ok(Pick { decision, entry, forecast }) => {
                debug!("{decision}{}", worker.config.objectives.account(&inbound.headers));
                worker.metrics.borrow_mut().picked();
                let destination = decision.destination().unwrap_or_default();
                // Of embeddings there is nothing to learn, and their answers are long.
                let tells = prompt.is_some() && inbound.dialect != Some(Dialect::Embeddings);
                let chains = prompt.map(|prompt| prompt.chains).unwrap_or_default();
                let explanation = (worker.config.explain == Explain::Header).then(|| decision.to_string());
                let address = decision.ranked.into_iter().next().map(|first| first.address).unwrap_or_default();
                self.placed =
                    Some(Placed { address, explanation, entry, forecast, chains, tells, streams: false, usage: None });
                if let Err(status) = abi::set_header(Headers::Request, DESTINATION, destination.as_bytes()) {
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
                // To let through what was shed would take from those for whom it was.
                let open = worker.config.failure_mode == FailureMode::FailOpen && why != NoPick::Saturated;
                worker.metrics.borrow_mut().not_picked(why, open);
                if open { Action::Continue } else { refuse(inbound.dialect, why) }
            }
        }
    }

    /// The stream is gone.
    fn close(&mut self) {
        if let (Some(worker), Some(placed)) = (&self.worker, self.placed.take()) {
            placed.close(worker);
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
        let Some(worker) = self.worker.clone() else { return Action::Continue };
        let inbound = Inbound::read(&worker);
        if end_of_stream || !inbound.has_prompt() {
            return self.decide(&worker, &inbound, None);
        }
        self.held = Some(inbound);
        Action::Pause
    }

    fn on_http_request_body(&mut self, body_size: usize, end_of_stream: bool) -> Action {
        let (Some(inbound), Some(worker)) = (self.held.take(), &self.worker) else { return Action::Continue };
        if end_of_stream || body_size >= worker.config.request.max_body_bytes {
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

    fn on_http_response_headers(&mut self, _: usize, _: bool) -> Action {
        if let Some((worker, placed)) = self.worker.as_ref().zip(self.placed.take()) {
            self.placed = Some(placed.headers(worker));
        }
        Action::Continue
    }

    fn on_http_response_body(&mut self, body_size: usize, end_of_stream: bool) -> Action {
        if let Some((worker, placed)) = self.worker.as_ref().zip(self.placed.as_mut()) {
            placed.body(worker, body_size, end_of_stream);
        }
        Action::Continue
    }

    // Runs whatever ended the stream: its end, either side leaving, a timeout, an answer of ours.
    fn on_log(&mut self) {
        self.close();
    }
}

fn refuse(dialect: Option<Dialect>, why: NoPick) -> Action {
    let Reply { status, details, headers, body } = Reply::unavailable(dialect, why);
    match abi::local_response(status, details, &headers, &body) {
        Ok(()) => Action::Pause,
        Err(_) => Action::Continue,
    }
}
