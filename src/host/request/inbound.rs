//! What a request says before it is decided on.

use super::super::abi::{self, Buffer, Headers as Map, Refused};
use super::super::worker::Worker;
use super::super::{SUBSET, number};
use crate::config::SubsetHint;
use crate::headers::Headers;
use crate::prompt::{self, Dialect, Prompt};
use crate::subset::Subset;

/// A request as its headers tell.
pub(super) struct Inbound {
    /// What the client speaks; `None` if it asks for nothing that a model generates.
    pub(super) dialect: Option<Dialect>,
    /// Those of its headers that matter to where it goes.
    pub(super) headers: Headers,
    /// The only endpoints that the proxy wants it to go to.
    pub(super) subset: Option<Subset>,
    /// It asks the filter whether it is ready.
    pub(super) asks_health: bool,
    /// The body, if there is one, can be read.
    readable: bool,
}

/// What was read of a request's body.
pub(super) struct Body {
    pub(super) bytes: Vec<u8>,
    /// Of the whole body, where it is known.
    pub(super) length: Option<u64>,
    /// Its end has not come.
    pub(super) arriving: bool,
}

impl Inbound {
    /// Reads the headers; host calls are made for those only that matter.
    pub(super) fn read(worker: &Worker) -> Self {
        let header = |name: &str| abi::header(Map::Request, name);
        let posts = || header(":method").is_some_and(|method| method == b"POST");
        let path = header(":path").unwrap_or_default();
        let dialect = Dialect::of_path(&path).filter(|_| posts());
        let is_health = |health: &str| path.split(|byte| *byte == b'?').next() == Some(health.as_bytes());
        let wanted = worker.config.request_headers.iter();
        Self {
            dialect,
            headers: wanted.filter_map(|name| Some((name.clone(), header(name)?))).collect(),
            subset: (worker.config.subset_hint == SubsetHint::Honour).then(subset).flatten(),
            asks_health: worker.config.health_path.as_deref().is_some_and(is_health),
            readable: dialect.is_some() && is_plain(header("content-encoding")),
        }
    }

    /// Whether a body that follows tells more.
    pub(super) fn has_prompt(&self) -> bool {
        self.readable
    }

    /// At most `max_body_bytes` of what has come of the body, which is `whole` bytes long; if its end has not come, it is as
    /// long as declared.
    pub(super) fn body(&self, worker: &Worker, whole: Option<usize>) -> Body {
        let bytes = abi::buffer(Buffer::RequestBody, worker.config.request.max_body_bytes).unwrap_or_default();
        let declared = || number(&abi::header(Map::Request, "content-length")?);
        let length = whole.map_or_else(declared, |whole| u64::try_from(whole).ok());
        Body { bytes, length, arriving: whole.is_none() }
    }

    /// What a body asks for, cut as the pool of `worker` cuts prompts.
    pub(super) fn prompt(&self, worker: &Worker, body: &Body) -> Option<Prompt> {
        let prompt = prompt::read(self.dialect?, &body.bytes, body.length, worker.picker.borrow().blocks());
        Some(Prompt { arriving: body.arriving, ..prompt })
    }
}

/// What cannot be read was asked for all the same, and names nobody.
fn subset() -> Option<Subset> {
    match abi::try_property(&SUBSET) {
        Ok(value) => Some(Subset::parse(&value)),
        Err(Refused::UNREADABLE) => Some(Subset::default()),
        Err(_) => None,
    }
}

fn is_plain(content_encoding: Option<Vec<u8>>) -> bool {
    content_encoding.is_none_or(|encoding| encoding.is_empty() || encoding.eq_ignore_ascii_case(b"identity"))
}
