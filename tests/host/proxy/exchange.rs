//! A request and its answer as a test tells them.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;

use proxy_wasm::types::Status;
use serde_json::Value;

use super::headers::Headers;
use super::stream::{self, Reply, Sent, Stream};
use super::vm::Vm;

/// A request to be sent.
#[derive(Clone, Debug)]
pub struct Request {
    headers: Headers,
    pieces: Vec<Vec<u8>>,
    ending: Ending,
    subset: Option<Result<Vec<u8>, Status>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    WithHeaders,
    WithBody,
    WithTrailers,
    NotYet,
}

impl Request {
    pub fn new(method: &str, path: impl AsRef<[u8]>) -> Self {
        let mut headers = Headers::default();
        headers.add(":method", method);
        headers.add(":path", path);
        headers.add(":scheme", "http");
        headers.add(":authority", "llm.example");
        Self { headers, pieces: Vec::new(), ending: Ending::WithHeaders, subset: None }
    }

    pub fn get(path: &str) -> Self {
        Self::new("GET", path)
    }

    pub fn post(path: &str) -> Self {
        Self::new("POST", path)
    }

    pub fn header(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.headers.add(name, value);
        self
    }

    /// A filter before this one wrote this subset hint, as the host hands it over.
    pub fn subset(mut self, hint: Result<Vec<u8>, Status>) -> Self {
        self.subset = Some(hint);
        self
    }

    /// A body of declared length that arrives at once.
    pub fn body(self, body: impl AsRef<[u8]>) -> Self {
        let length = body.as_ref().len().to_string();
        self.header("content-length", length).pieces([body])
    }

    /// A body of undeclared length that arrives in pieces.
    pub fn pieces(mut self, pieces: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Self {
        self.pieces = pieces.into_iter().map(|piece| piece.as_ref().to_vec()).collect();
        self.ending = Ending::WithBody;
        self
    }

    /// The body is ended by trailers.
    pub fn with_trailers(mut self) -> Self {
        self.ending = Ending::WithTrailers;
        self
    }

    /// More of the body is to come.
    pub fn unfinished(mut self) -> Self {
        self.ending = Ending::NotYet;
        self
    }

    pub(super) fn send(self, vm: &Arc<Vm>, root: u32) -> Exchange {
        let Self { headers, pieces, ending, subset } = self;
        let context = vm.run(move || {
            let context = stream::open(root, headers, subset, ending == Ending::WithHeaders);
            let last = pieces.len().wrapping_sub(1);
            for (i, piece) in pieces.iter().enumerate() {
                stream::body(context, piece, ending == Ending::WithBody && i == last);
            }
            if ending == Ending::WithTrailers {
                stream::trailers(context);
            }
            context
        });
        Exchange { vm: vm.clone(), context, over: Cell::new(false) }
    }
}

/// A request under way. Dropped, it is answered and ends well.
pub struct Exchange {
    vm: Arc<Vm>,
    context: u32,
    over: Cell<bool>,
}

impl Exchange {
    fn look(&self) -> Stream {
        let context = self.context;
        self.vm.run(move || stream::look(context))
    }

    /// What went upstream; `None` while it is held or if it was answered by the proxy.
    pub fn sent(&self) -> Option<Sent> {
        self.look().sent
    }

    /// The request waits for the filter.
    pub fn is_held(&self) -> bool {
        let stream = self.look();
        stream.sent.is_none() && stream.reply.is_none()
    }

    /// The destination header of the request that went upstream.
    pub fn destination(&self) -> Option<String> {
        let sent = self.sent().unwrap_or_else(|| panic!("nothing was sent on: {:?}", self.look().reply));
        sent.headers.get("x-gateway-destination-endpoint").map(|value| String::from_utf8(value).unwrap())
    }

    /// The endpoint that was picked.
    pub fn picked(&self) -> String {
        let destination = self.destination().expect("no destination was set");
        destination.split(',').next().unwrap().to_owned()
    }

    /// The proxy's own answer.
    pub fn reply(&self) -> Reply {
        self.look().reply.expect("the request was sent on")
    }

    /// The body of the proxy's own answer.
    pub fn reply_json(&self) -> Value {
        serde_json::from_slice(&self.reply().body).unwrap()
    }

    /// How often the filter called the host for this request, by name.
    pub fn host_calls(&self) -> BTreeMap<&'static str, usize> {
        self.look().calls
    }

    /// The next piece of the request's body.
    pub fn piece(&self, piece: impl AsRef<[u8]>) -> &Self {
        let (context, piece) = (self.context, piece.as_ref().to_vec());
        self.vm.run(move || stream::body(context, &piece, false));
        self
    }

    /// The request's body ends.
    pub fn end(&self) -> &Self {
        let context = self.context;
        self.vm.run(move || stream::body(context, b"", true));
        self
    }

    /// The endpoint that was picked begins to answer.
    pub fn answers(&self, status: u16) -> &Self {
        self.answered_by(&self.picked(), status)
    }

    /// `address` begins to answer, whatever was picked.
    pub fn answered_by(&self, address: &str, status: u16) -> &Self {
        self.begin(address, status, false)
    }

    /// The proxy answers itself, after it tried `address` last.
    pub fn fails_at(&self, address: &str) -> &Self {
        self.begin(address, 503, true)
    }

    fn begin(&self, address: &str, status: u16, made_up: bool) -> &Self {
        let (context, address) = (self.context, address.to_owned());
        self.vm.run(move || {
            stream::served_by(context, address, made_up);
            let mut headers = Headers::default();
            headers.add(":status", status.to_string());
            headers.add("content-type", "text/event-stream");
            stream::respond(context, headers);
        });
        self
    }

    /// An answer with these headers from nobody known.
    pub fn answers_with(&self, headers: &[(&str, &[u8])]) -> &Self {
        let (context, headers) = (self.context, headers.iter().copied().collect());
        self.vm.run(move || stream::respond(context, headers));
        self
    }

    /// A header of the answer as the client gets it.
    pub fn answer_header(&self, name: &str) -> Option<String> {
        self.look().response.get(name).map(|value| String::from_utf8(value).unwrap())
    }

    /// A piece of the answer.
    pub fn says(&self, piece: &str) -> &Self {
        let (context, piece) = (self.context, piece.as_bytes().to_vec());
        self.vm.run(move || stream::respond_body(context, &piece, false));
        self
    }

    /// Header and body of the answer so far, as the client got them.
    pub fn received(&self) -> (Headers, String) {
        let stream = self.look();
        (stream.response, String::from_utf8(stream.received).unwrap())
    }

    /// The answer has no more pieces; the stream is still there.
    pub fn says_no_more(&self) -> &Self {
        let context = self.context;
        self.vm.run(move || stream::respond_body(context, b"", true));
        self
    }

    /// The answer ends.
    pub fn finishes(&self) {
        let context = self.context;
        self.vm.run(move || stream::respond_body(context, b"", true));
        self.close();
    }

    /// The stream is gone, and the proxy noted these flags.
    pub fn breaks(&self, flags: u64) {
        let context = self.context;
        self.vm.run(move || stream::flags(context, flags));
        self.close();
    }

    /// The response headers as the client gets them.
    pub fn response(&self) -> Headers {
        self.look().response
    }

    /// The stream is gone: the client left, a timeout struck, or there was nothing more to say.
    pub fn close(&self) {
        let context = self.context;
        self.over.set(true);
        self.vm.run(move || stream::close(context));
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if !self.over.get() && !thread::panicking() && self.vm.is_alive() {
            self.close();
        }
    }
}
