//! A request that goes to another model than it names: its body on the way in, its answer on the way back.

use log::{error, warn};

use super::super::abi::{self, Buffer, Headers, Refused};
use super::super::pools::Pools;
use super::super::worker::Worker;
use super::super::{MODEL_REWRITE, OLD_MODEL_REWRITE, number, random};
use super::answer::framing;
use super::inbound::{Body, Inbound};
use crate::config::REQUEST_ID;
use crate::rewrite::{self, Outcome, Restorer, Rewritten};

const LENGTH: &str = "content-length";

/// A rewritten request.
pub(super) struct Rewriting {
    /// The client's name of the model.
    model: Box<[u8]>,
    /// The one that was sent on.
    target: String,
    /// Puts the name back in an answer that can be read.
    restorer: Option<Restorer>,
}

/// Where rules choose the model, a client's header does not.
pub(super) fn clear(pools: &Pools) {
    if pools.rename_models() {
        let _ = abi::remove_header(Headers::Request, MODEL_REWRITE);
        let _ = abi::remove_header(Headers::Request, OLD_MODEL_REWRITE);
    }
}

/// A body goes on that cannot be read.
pub(super) fn passed_by(pools: &Pools, worker: &Worker, inbound: &Inbound) {
    if inbound.dialect.is_some() && pools.rename_models() {
        worker.metrics.borrow_mut().not_rewritten();
    }
}

impl Rewriting {
    /// Applies the rules to what was read of the body, and to the body that the proxy holds: first those that choose a model
    /// for who leaves it open, then those that replace one by another.
    pub(super) fn of(pools: &Pools, worker: &Worker, inbound: &Inbound, body: &mut Body) -> Option<Self> {
        let dialect = inbound.dialect.filter(|_| pools.rename_models())?;
        let (rules, read) = (&worker.config.model_rewrites, &body.bytes);
        let target = |model: &[u8]| {
            let chosen = pools.routes.choose(model, dialect, read, body.length, &inbound.headers);
            let draw = inbound.headers.get(REQUEST_ID).map_or_else(random, rewrite::draw);
            rules.target(chosen.map_or(model, str::as_bytes), draw).or(chosen)
        };
        match rewrite::rename(read, target) {
            Outcome::Kept => None,
            Outcome::NoModel => {
                worker.metrics.borrow_mut().not_rewritten();
                None
            }
            Outcome::Rewritten(Rewritten { body: mut renamed, model, target }) => {
                let (length, before) = (renamed.len(), read.len());
                // The proxy has no way to replace a part: whatever it holds beyond goes along.
                if before >= worker.config.request.max_body_bytes {
                    let held = abi::buffer(Buffer::RequestBody, i32::MAX as usize).unwrap_or_default();
                    renamed.extend_from_slice(held.get(before..).unwrap_or_default());
                }
                if let Err(status) = replace(&renamed, length, before) {
                    worker.metrics.borrow_mut().rewrite_refused();
                    if worker.may_complain(abi::now()) {
                        error!("a body could not be rewritten ({status:?}): is allow_on_headers_stop_iteration on?");
                    }
                    return None;
                }
                worker.metrics.borrow_mut().rewritten();
                let _ = abi::set_header(Headers::Request, MODEL_REWRITE, target.as_bytes());
                // A compressed answer could not be restored.
                let _ = abi::remove_header(Headers::Request, "accept-encoding");
                renamed.truncate(length);
                let longer = |whole: u64| whole.saturating_add(length as u64).saturating_sub(before as u64);
                *body = Body { bytes: renamed, length: body.length.map(longer), arriving: body.arriving };
                Some(Self { model, target, restorer: None })
            }
        }
    }

    /// The answer begins.
    pub(super) fn headers(&mut self, worker: &Worker, end_of_stream: bool) {
        if abi::header(Headers::Response, ":status").as_deref() == Some(b"404") {
            worker.metrics.borrow_mut().target_unknown();
            if worker.may_complain(abi::now()) {
                warn!("model_rewrites: a server answered 404 to the target {:?}", self.target);
            }
        }
        let framing = framing().filter(|_| !end_of_stream && abi::remove_header(Headers::Response, LENGTH).is_ok());
        self.restorer = framing.map(|framing| Restorer::new(framing, self.target.as_bytes(), &self.model));
    }

    /// Whether it looks at the pieces of the answer.
    pub(super) fn reads(&self) -> bool {
        self.restorer.is_some()
    }

    /// A piece of the answer came. One that breaks off inside the name and then has trailers, as no model server sends them,
    /// loses what was held back: no host takes a body with trailers any more.
    pub(super) fn body(&mut self, worker: &Worker, piece: &[u8], end_of_stream: bool) {
        let Some(mut restorer) = self.restorer.take() else { return };
        let mut restored = restorer.push(piece);
        if end_of_stream {
            let held = restorer.finish();
            if !held.is_empty() {
                restored.get_or_insert_with(|| piece.to_vec()).extend(held);
            }
        } else {
            self.restorer = Some(restorer);
        }
        if restored.is_some_and(|restored| abi::set_buffer(Buffer::ResponseBody, &restored).is_err()) {
            worker.metrics.borrow_mut().rewrite_refused();
            self.restorer = None;
        }
    }
}

/// Sends `body` on, whose beginning grew to `length` from `before`. At no moment is a length declared that the body does not
/// have: what is too long would become the next request of the connection.
fn replace(body: &[u8], length: usize, before: usize) -> Result<(), Refused> {
    let declared = if length == before { None } else { abi::header(Headers::Request, LENGTH) };
    let Some(declared) = declared else { return abi::set_buffer(Buffer::RequestBody, body) };
    abi::remove_header(Headers::Request, LENGTH)?;
    let replaced = abi::set_buffer(Buffer::RequestBody, body);
    let old = number::<u64>(&declared);
    let new = old.and_then(|old| old.checked_add(length as u64)?.checked_sub(before as u64));
    // Without one the body is sent in chunks.
    if let Some(length) = if replaced.is_ok() { new } else { old } {
        let _ = abi::set_header(Headers::Request, LENGTH, length.to_string().as_bytes());
    }
    replaced
}
