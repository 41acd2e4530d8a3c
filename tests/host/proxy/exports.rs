//! The module's exports, called as the proxy calls them.

#![allow(unsafe_code)]

use endpoint_picker as _;
use proxy_wasm::types::Action;

use super::server::Answer;
use super::vm::state;

unsafe extern "C" {
    safe fn _initialize();
    safe fn proxy_on_context_create(context: u32, root: u32);
    safe fn proxy_on_vm_start(context: u32, size: usize) -> bool;
    safe fn proxy_on_configure(context: u32, size: usize) -> bool;
    safe fn proxy_on_tick(context: u32);
    safe fn proxy_on_request_headers(context: u32, count: usize, end: bool) -> Action;
    safe fn proxy_on_request_body(context: u32, size: usize, end: bool) -> Action;
    safe fn proxy_on_request_trailers(context: u32, count: usize) -> Action;
    safe fn proxy_on_response_headers(context: u32, count: usize, end: bool) -> Action;
    safe fn proxy_on_response_body(context: u32, size: usize, end: bool) -> Action;
    safe fn proxy_on_log(context: u32);
    safe fn proxy_on_done(context: u32) -> bool;
    safe fn proxy_on_delete(context: u32);
    safe fn proxy_on_http_call_response(context: u32, token: u32, headers: usize, body: usize, trailers: usize);
    safe fn proxy_on_memory_allocate(size: usize) -> *mut u8;
}

pub fn initialize() {
    _initialize();
}

/// Memory that the module will take over.
pub fn allocate(size: usize) -> *mut u8 {
    proxy_on_memory_allocate(size)
}

fn within<T>(context: u32, callback: impl FnOnce() -> T) -> T {
    state(|state| state.effective = context);
    callback()
}

pub fn create(context: u32, root: u32) {
    within(context, || proxy_on_context_create(context, root));
}

/// Starts a root context: whether it accepts its configuration.
pub fn start(root: u32) -> bool {
    let size = state(|state| state.roots[&root].configuration.len());
    within(root, || proxy_on_vm_start(root, 0) && proxy_on_configure(root, size))
}

pub fn tick(root: u32) {
    within(root, || proxy_on_tick(root));
}

pub fn answer(root: u32, token: u32, answer: Answer) {
    let (headers, body) = (answer.headers.len(), answer.body.len());
    state(|state| state.answer = Some(answer));
    within(root, || proxy_on_http_call_response(root, token, headers, body, 0));
    state(|state| state.answer = None);
}

pub fn request_headers(context: u32, count: usize, end: bool) -> Action {
    within(context, || proxy_on_request_headers(context, count, end))
}

pub fn request_body(context: u32, size: usize, end: bool) -> Action {
    within(context, || proxy_on_request_body(context, size, end))
}

pub fn request_trailers(context: u32, count: usize) -> Action {
    within(context, || proxy_on_request_trailers(context, count))
}

pub fn response_headers(context: u32, count: usize, end: bool) -> Action {
    within(context, || proxy_on_response_headers(context, count, end))
}

pub fn response_body(context: u32, size: usize, end: bool) -> Action {
    within(context, || proxy_on_response_body(context, size, end))
}

/// The end of a stream, whatever the cause.
pub fn end(context: u32) {
    within(context, || proxy_on_log(context));
    assert!(within(context, || proxy_on_done(context)), "the module holds a stream that is over");
    within(context, || proxy_on_delete(context));
}
