//! One request on its way through the proxy.

use std::rc::Rc;

use log::{debug, error};
use proxy_wasm::traits::{Context, HttpContext};
use proxy_wasm::types::Action;

use super::abi::{self, Buffer, Headers};
use super::worker::Worker;
use super::{DECISION, DESTINATION};
use crate::config::{Explain, FailureMode};
use crate::ledger::Entry;
use crate::picker::{Forecast, NoPick, Pick};
use crate::prompt::{self, Chain, Dialect, Prompt};
use crate::reply::Reply;

/// A request's state. Headers are held only while a prompt is being read.
pub(super) struct Request {
    worker: Option<Rc<Worker>>,
    reading: Option<Dialect>,
    declared_len: Option<u64>,
    placed: Option<Placed>,
}

/// A request on its way to a server.
struct Placed {
    /// The server that was named first.
    address: Box<str>,
    /// Why, if the client shall know.
    explanation: Option<String>,
    entry: Entry,
    forecast: Forecast,
    /// Of its prompt, until it is known who serves it.
    chains: Vec<Chain>,
    /// The answer comes as a stream of events.
    streams: bool,
    /// Pieces of the answer so far, each about a token.
    pieces: u32,
}

impl Request {
    pub(super) fn new(worker: Option<Rc<Worker>>) -> Self {
        Self { worker, reading: None, declared_len: None, placed: None }
    }

    /// Decides on at most `max_body_bytes` of what has been read of the body.
    fn decide_on_body(&mut self, dialect: Dialect) -> Action {
        self.reading = None;
        let Some(worker) = self.worker.clone() else { return Action::Continue };
        let body = abi::buffer(Buffer::RequestBody, worker.config.request.max_body_bytes).unwrap_or_default();
        let prompt = prompt::read(dialect, &body, self.declared_len, worker.picker.borrow().blocks());
        self.decide(&worker, Some(dialect), Some(prompt))
    }

    fn decide(&mut self, worker: &Worker, dialect: Option<Dialect>, prompt: Option<Prompt>) -> Action {
        if worker.picker.borrow().snapshot_version().is_none() {
            worker.refresh(None);
        }
        let now = abi::now();
        let picked = worker.picker.borrow_mut().pick(&*worker.store, prompt.as_ref(), now);
        match picked {
            Ok(Pick { decision, entry, forecast }) => {
                debug!("{decision}");
                worker.metrics.borrow_mut().picked();
                let destination = decision.destination().unwrap_or_default();
                let chains = prompt.map(|prompt| prompt.chains).unwrap_or_default();
                let explanation = (worker.config.explain == Explain::Header).then(|| decision.to_string());
                let address = decision.ranked.into_iter().next().map(|first| first.address).unwrap_or_default();
                self.placed = Some(Placed { address, explanation, entry, forecast, chains, streams: false, pieces: 0 });
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
                let open = worker.config.failure_mode == FailureMode::FailOpen;
                worker.metrics.borrow_mut().not_picked(why, open);
                if open { Action::Continue } else { refuse(dialect, why) }
            }
        }
    }

    /// The stream is gone.
    fn close(&mut self) {
        if let (Some(worker), Some(placed)) = (&self.worker, self.placed.take()) {
            worker.picker.borrow_mut().close(placed.entry, abi::now());
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
        let header = |name| abi::header(Headers::Request, name);
        let method = header(":method").unwrap_or_default();
        let dialect = header(":path").and_then(|path| Dialect::of_path(&path)).filter(|_| method == b"POST");
        let Some(dialect) = dialect.filter(|_| !end_of_stream && is_plain(header("content-encoding"))) else {
            return self.decide(&worker, dialect, None);
        };
        self.declared_len = header("content-length").and_then(|n| std::str::from_utf8(&n).ok()?.trim().parse().ok());
        self.reading = Some(dialect);
        Action::Pause
    }

    fn on_http_request_body(&mut self, body_size: usize, end_of_stream: bool) -> Action {
        let (Some(dialect), Some(worker)) = (self.reading, &self.worker) else { return Action::Continue };
        if end_of_stream || body_size >= worker.config.request.max_body_bytes {
            self.decide_on_body(dialect)
        } else {
            Action::Pause
        }
    }

    // A body that ends with trailers has no body call at its end.
    fn on_http_request_trailers(&mut self, _: usize) -> Action {
        match self.reading {
            Some(dialect) => self.decide_on_body(dialect),
            None => Action::Continue,
        }
    }

    fn on_http_response_headers(&mut self, _: usize, _: bool) -> Action {
        let Some((worker, mut placed)) = self.worker.as_ref().zip(self.placed.take()) else { return Action::Continue };
        if let Some(explanation) = placed.explanation.take() {
            let _ = abi::set_header(Headers::Response, DECISION, explanation.as_bytes());
        }
        let chains = std::mem::take(&mut placed.chains);
        let served = abi::property(&["upstream", "address"]).unwrap_or_default();
        // An answer of the proxy's own names the server that it tried last.
        let elsewhere = !served.is_empty()
            && served != placed.address.as_bytes()
            && abi::property(&["response", "code_details"]).as_deref() == Some(b"via_upstream");
        if elsewhere {
            worker.metrics.borrow_mut().served_elsewhere();
            let mut picker = worker.picker.borrow_mut();
            placed.entry = picker.moved(&*worker.store, placed.entry, &chains, &served, abi::now());
        }
        placed.streams = !elsewhere
            && abi::header(Headers::Response, "content-type")
                .is_some_and(|kind| kind.starts_with(b"text/event-stream"));
        self.placed = Some(placed);
        Action::Continue
    }

    fn on_http_response_body(&mut self, body_size: usize, end_of_stream: bool) -> Action {
        let Some((worker, placed)) = self.worker.as_ref().zip(self.placed.as_mut()) else { return Action::Continue };
        let Placed { entry, forecast, streams, pieces, .. } = placed;
        if body_size > 0 {
            *pieces = pieces.saturating_add(1);
            if entry.is_prefilling() {
                worker.picker.borrow_mut().first_token(entry, forecast, *streams, abi::now());
            }
        }
        if end_of_stream {
            worker.picker.borrow_mut().finished(entry, forecast, *pieces, abi::now());
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

fn is_plain(content_encoding: Option<Vec<u8>>) -> bool {
    content_encoding.is_none_or(|encoding| encoding.is_empty() || encoding.eq_ignore_ascii_case(b"identity"))
}
