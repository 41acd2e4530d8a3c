//! A placed request, from its server's first header to the end of the stream.

use super::super::DECISION;
use super::super::abi::{self, Headers};
use super::super::worker::Worker;
use crate::ledger::Entry;
use crate::outcome::Outcome;
use crate::picker::Forecast;
use crate::prompt::Chain;
use crate::session::Home;
use crate::usage::{Framing, UsageReader};

/// A request on its way to a server.
pub(super) struct Placed {
    /// The server that was named first.
    pub(super) address: Box<str>,
    /// Why, if the client shall know.
    pub(super) explanation: Option<String>,
    pub(super) entry: Entry,
    pub(super) forecast: Forecast,
    /// Where its session was at home.
    pub(super) session: Home,
    /// Of its prompt, until it is known who serves it.
    pub(super) chains: Vec<Chain>,
    /// The answer will tell how many tokens it took.
    pub(super) tells: bool,
    /// The answer comes as a stream of events.
    pub(super) streams: bool,
    /// Reads an answer that tells, if it can be read.
    pub(super) usage: Option<UsageReader>,
    /// A good answer has begun.
    pub(super) begun: bool,
    /// The answer has come to its end.
    pub(super) ended: bool,
}

impl Placed {
    /// The answer begins: it shows who serves the request, and how that one fares.
    pub(super) fn headers(mut self, worker: &Worker, end_of_stream: bool) -> Self {
        self.ended = end_of_stream;
        if let Some(explanation) = self.explanation.take() {
            let _ = abi::set_header(Headers::Response, DECISION, explanation.as_bytes());
        }
        let chains = std::mem::take(&mut self.chains);
        let served = abi::property(&["upstream", "address"]).unwrap_or_default();
        // An answer of the proxy's own names the server that it tried last.
        let answered = || abi::property(&["response", "code_details"]).as_deref() == Some(b"via_upstream");
        let other = if served == self.address.as_bytes() { &[][..] } else { &served };
        let status = abi::header(Headers::Response, ":status").unwrap_or_default();
        let outcome = Outcome::of_answer(&status, abi::response_flags);
        self.begun = outcome == Outcome::Served;
        if outcome == Outcome::Failed {
            worker.metrics.borrow_mut().server_failed();
        }
        worker.picker.borrow_mut().answered(&self.entry, other, outcome, abi::now);
        let elsewhere = !other.is_empty() && answered();
        if elsewhere {
            worker.metrics.borrow_mut().served_elsewhere();
            let mut picker = worker.picker.borrow_mut();
            self.entry = picker.moved(&*worker.store, self.entry, &chains, &served, abi::now());
        }
        if let Some(name) = worker.config.served_header.as_deref().filter(|_| !served.is_empty() && answered()) {
            let _ = abi::set_header(Headers::Response, name, &served);
        }
        self.greet(worker, if served.is_empty() { self.address.as_bytes() } else { &served });
        // Nothing was foretold of another server, nor of how soon one refuses.
        if self.tells && !elsewhere && status == b"200" {
            let framing = framing();
            self.streams = framing == Some(Framing::EventStream);
            self.usage = framing.map(UsageReader::new);
        }
        self
    }

    /// Tells the client which server has its session now, if it does not know.
    fn greet(&self, worker: &Worker, served: &[u8]) {
        let picker = worker.picker.borrow();
        let Some(greeting) = picker.greeting(self.session, served) else { return };
        // Nobody served what the proxy answered itself.
        if abi::property(&["response", "code_details"]).is_none_or(|details| details == b"via_upstream") {
            let set = if greeting.beside_others { abi::add_header } else { abi::set_header };
            let _ = set(Headers::Response, greeting.header, &greeting.value);
        }
    }

    /// Whether it looks at the pieces of the answer.
    pub(super) fn reads(&self) -> bool {
        self.usage.is_some()
    }

    /// A piece of the answer came, `body_size` bytes of which `piece` has all if it looks at them.
    pub(super) fn body(&mut self, worker: &Worker, body_size: usize, piece: &[u8], end_of_stream: bool) {
        self.ended = end_of_stream;
        let Self { entry, forecast, streams, usage, .. } = self;
        if body_size > 0 {
            if let Some(usage) = usage {
                usage.push(piece);
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
    }

    /// The stream is gone.
    pub(super) fn close(self, worker: &Worker) {
        if self.begun && !self.ended {
            let outcome = Outcome::of_end(abi::response_flags());
            if outcome == Outcome::Failed {
                worker.metrics.borrow_mut().server_failed();
            }
            worker.picker.borrow_mut().cut_off(&self.entry, outcome, abi::now());
        }
        worker.picker.borrow_mut().close(self.entry, abi::now());
    }
}

/// How the answer is cut into documents; nothing if it cannot be read.
pub(super) fn framing() -> Option<Framing> {
    let header = |name| abi::header(Headers::Response, name);
    header("content-type")
        .and_then(|media_type| Framing::of_headers(&media_type, header("content-encoding").as_deref()))
}
