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
use crate::usage::{Framing, UsageReader};

/// A request's state. Headers are held only while a prompt is being read.
pub(super) struct Request {
    worker: Option<Rc<Worker>>,
    reading: Option<Dialect>,
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
    /// The answer will tell how many tokens it took.
    tells: bool,
    /// The answer comes as a stream of events.
    streams: bool,
    /// Reads an answer that tells, if it can be read.
    usage: Option<UsageReader>,
}

impl Request {
    pub(super) fn new(worker: Option<Rc<Worker>>) -> Self {
        Self { worker, reading: None, placed: None }
    }

    /// Decides on at most `max_body_bytes` of what has been read of the body, which is `whole` bytes long; if its end has not
    /// come, it is as long as declared.
    fn decide_on_body(&mut self, dialect: Dialect, whole: Option<usize>) -> Action {
        self.reading = None;
        let Some(worker) = self.worker.clone() else { return Action::Continue };
        let body = abi::buffer(Buffer::RequestBody, worker.config.request.max_body_bytes).unwrap_or_default();
        let declared =
            || std::str::from_utf8(&abi::header(Headers::Request, "content-length")?).ok()?.trim().parse().ok();
        let length = whole.map_or_else(declared, |whole| u64::try_from(whole).ok());
        let prompt = prompt::read(dialect, &body, length, worker.picker.borrow().blocks());
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
                // Of embeddings there is nothing to learn, and their answers are long.
                let tells = prompt.is_some() && dialect != Some(Dialect::Embeddings);
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
        let posts = || header(":method").is_some_and(|method| method == b"POST");
        let dialect = header(":path").and_then(|path| Dialect::of_path(&path)).filter(|_| posts());
        let Some(dialect) = dialect.filter(|_| !end_of_stream && is_plain(header("content-encoding"))) else {
            return self.decide(&worker, dialect, None);
        };
        self.reading = Some(dialect);
        Action::Pause
    }

    fn on_http_request_body(&mut self, body_size: usize, end_of_stream: bool) -> Action {
        let (Some(dialect), Some(worker)) = (self.reading, &self.worker) else { return Action::Continue };
        if end_of_stream || body_size >= worker.config.request.max_body_bytes {
            self.decide_on_body(dialect, end_of_stream.then_some(body_size))
        } else {
            Action::Pause
        }
    }

    // A body that ends with trailers has no body call at its end.
    fn on_http_request_trailers(&mut self, _: usize) -> Action {
        match self.reading {
            Some(dialect) => self.decide_on_body(dialect, None),
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
        let header = |name| abi::header(Headers::Response, name);
        // Nothing was foretold of another server, nor of how soon one refuses.
        if placed.tells && !elsewhere && header(":status").as_deref() == Some(b"200") {
            let framing = header("content-type")
                .and_then(|media_type| Framing::of_headers(&media_type, header("content-encoding").as_deref()));
            placed.streams = framing == Some(Framing::EventStream);
            placed.usage = framing.map(UsageReader::new);
        }
        self.placed = Some(placed);
        Action::Continue
    }

    fn on_http_response_body(&mut self, body_size: usize, end_of_stream: bool) -> Action {
        let Some((worker, placed)) = self.worker.as_ref().zip(self.placed.as_mut()) else { return Action::Continue };
        let Placed { entry, forecast, streams, usage, .. } = placed;
        if body_size > 0 {
            if let Some(usage) = usage {
                usage.push(&abi::buffer(Buffer::ResponseBody, body_size).unwrap_or_default());
            }
            if entry.is_prefilling() && usage.as_ref().is_none_or(UsageReader::first_token_seen) {
                worker.picker.borrow_mut().first_token(entry, forecast, *streams, abi::now());
            }
        }
        if end_of_stream && let Some(usage) = usage.take() {
            let lost = worker.picker.borrow_mut().finished(entry, forecast, &usage.finish(), abi::now());
            if lost {
                worker.metrics.borrow_mut().cache_lost();
            }
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
