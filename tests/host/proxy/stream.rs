//! One request inside the proxy: what the filter may see and change when, and what went upstream.

use std::collections::BTreeMap;

use proxy_wasm::types::{Action, Status};

use super::exports;
use super::headers::Headers;
use super::vm::state;

/// An answer without an upstream.
#[derive(Clone, Debug)]
pub struct Reply {
    pub status: u16,
    pub details: String,
    pub headers: Headers,
    pub body: Vec<u8>,
}

/// A request as it went to the upstream.
#[derive(Clone, Debug, Default)]
pub struct Sent {
    pub headers: Headers,
    pub body: Vec<u8>,
}

/// What a filter may do with a header map.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    #[default]
    Gone,
    Read,
    Change,
}

/// The host's side of an HTTP context.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    /// Request headers as changed so far.
    pub request: Headers,
    /// Gone once the headers were sent on.
    pub request_access: Access,
    /// Body that is held, and in its callback also the newest piece.
    pub body: Vec<u8>,
    pub response: Headers,
    pub response_access: Access,
    /// The newest piece.
    pub response_body: Vec<u8>,
    /// All pieces as the client got them.
    pub received: Vec<u8>,
    /// Who serves it.
    pub upstream: Option<String>,
    /// Nobody does: the proxy answers for who it tried last.
    pub made_up: bool,
    /// Envoy's response flags.
    pub flags: u64,
    /// The subset hint in the dynamic metadata, as the host hands it over.
    pub subset: Option<Result<Vec<u8>, Status>>,
    pub sent: Option<Sent>,
    pub reply: Option<Reply>,
    /// Host calls by name.
    pub calls: BTreeMap<&'static str, usize>,
}

fn stream<T>(context: u32, look: impl FnOnce(&mut Stream) -> T) -> T {
    state(|state| look(state.streams.get_mut(&context).expect("no such stream")))
}

/// A request's headers arrive at a new stream of `root`.
pub fn open(root: u32, request: Headers, subset: Option<Result<Vec<u8>, Status>>, end: bool) -> u32 {
    let count = request.len();
    let context = state(|state| {
        let context = state.new_context();
        let stream = Stream { request, subset, request_access: Access::Change, ..Stream::default() };
        state.streams.insert(context, stream);
        context
    });
    exports::create(context, root);
    let action = exports::request_headers(context, count, end);
    go_on(context, action, end);
    context
}

/// A piece of its body arrives. While the filter pauses it sees all pieces so far.
pub fn body(context: u32, piece: &[u8], end: bool) {
    let size = stream(context, |stream| {
        stream.body.extend(piece);
        stream.reply.is_none().then_some(stream.body.len())
    });
    if let Some(size) = size {
        let action = exports::request_body(context, size, end);
        go_on(context, action, end);
    }
}

/// Trailers end its body; there is no body callback at the end.
pub fn trailers(context: u32) {
    if stream(context, |stream| stream.reply.is_none()) {
        let action = exports::request_trailers(context, 1);
        go_on(context, action, true);
    }
}

/// What the filter's action lets through.
fn go_on(context: u32, action: Action, end: bool) {
    let limit = state(|state| state.world().host.buffer_limit);
    let answered = stream(context, |stream| {
        if stream.reply.is_none() && action == Action::Continue {
            let sent = stream.sent.get_or_insert_with(|| Sent { headers: stream.request.clone(), body: Vec::new() });
            sent.body.append(&mut stream.body);
            stream.request_access = Access::Gone;
        } else if stream.reply.is_none() {
            assert!(!end, "a request that nothing will ever move on");
            if stream.body.len() > limit {
                let details = "request_payload_too_large".into();
                stream.reply = Some(Reply { status: 413, details, headers: Headers::default(), body: Vec::new() });
            }
        }
        stream.reply.clone()
    });
    // The proxy's own answers pass through the filter like any other.
    if let Some(reply) = answered {
        let mut headers = reply.headers;
        headers.add(":status", reply.status.to_string());
        respond(context, headers);
        respond_body(context, &reply.body, true);
    }
}

/// Response headers.
pub fn respond(context: u32, headers: Headers) {
    let count = headers.len();
    stream(context, |stream| (stream.response, stream.response_access) = (headers, Access::Change));
    let action = exports::response_headers(context, count, false);
    assert_eq!(action, Action::Continue, "a response is never held");
    stream(context, |stream| stream.response_access = Access::Gone);
}

/// A piece of the response body.
pub fn respond_body(context: u32, piece: &[u8], end: bool) {
    stream(context, |stream| stream.response_body = piece.to_vec());
    let action = exports::response_body(context, piece.len(), end);
    assert_eq!(action, Action::Continue, "a response is never held");
    stream(context, |stream| stream.received.append(&mut stream.response_body));
}

/// The stream is over, by its end or otherwise.
pub fn close(context: u32) {
    stream(context, |stream| (stream.request_access, stream.response_access) = (Access::Read, Access::Read));
    exports::end(context);
    state(|state| state.streams.remove(&context));
}

/// What the proxy notes of how the answer went wrong.
pub fn flags(context: u32, flags: u64) {
    stream(context, |stream| stream.flags = flags);
}

/// A copy for a test to look at.
pub fn look(context: u32) -> Stream {
    stream(context, |stream| stream.clone())
}

/// Names the upstream that serves the request.
pub fn served_by(context: u32, address: String, made_up: bool) {
    stream(context, |stream| {
        stream.upstream = Some(address);
        stream.made_up = made_up;
        // A connection failure.
        stream.flags = if made_up { 0x20 } else { 0 };
    });
}
