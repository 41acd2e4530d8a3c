//! Host calls on bytes, every status mapped.
//!
//! The SDK's own wrappers panic on statuses they do not expect and on text that is not UTF-8; one such panic is an
//! outage of the worker. So the calls that outside data can reach are declared here. Memory that the host hands over
//! was allocated by the SDK's `proxy_on_memory_allocate` as a boxed slice, and is taken back as one.

#![allow(unsafe_code)]

use std::ptr::null_mut;
use std::time::Duration;

use log::LevelFilter;

use crate::clock::Timestamp;
use crate::store::{Found, Store};

/// Header maps by their number in the ABI.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub(super) enum Headers {
    Request = 0,
    Response = 2,
    CallResponse = 6,
}

/// Buffers by their number in the ABI.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub(super) enum Buffer {
    RequestBody = 0,
    ResponseBody = 1,
    CallResponseBody = 4,
    PluginConfiguration = 7,
}

/// Metric kinds by their number in the ABI.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub(super) enum MetricKind {
    Counter = 0,
    Gauge = 1,
}

/// A status other than Ok, by its number in the ABI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refused(pub(super) u32);

impl Refused {
    /// There is a value, but the host cannot express it.
    pub(super) const UNREADABLE: Self = Self(3);
}

/// The proxy's shared data.
#[derive(Debug)]
pub(super) struct SharedData;

#[cfg_attr(target_family = "wasm", link(wasm_import_module = "env"))]
unsafe extern "C" {
    fn proxy_get_current_time_nanoseconds(time: *mut u64) -> u32;
    fn proxy_get_log_level(level: *mut u32) -> u32;
    fn proxy_set_tick_period_milliseconds(period: u32) -> u32;
    fn proxy_get_buffer_bytes(kind: u32, start: usize, max: usize, data: *mut *mut u8, size: *mut usize) -> u32;
    fn proxy_set_buffer_bytes(kind: u32, start: usize, length: usize, data: *const u8, size: usize) -> u32;
    fn proxy_get_header_map_value(
        map: u32,
        key: *const u8,
        key_size: usize,
        data: *mut *mut u8,
        size: *mut usize,
    ) -> u32;
    fn proxy_replace_header_map_value(
        map: u32,
        key: *const u8,
        key_size: usize,
        value: *const u8,
        value_size: usize,
    ) -> u32;
    fn proxy_add_header_map_value(
        map: u32,
        key: *const u8,
        key_size: usize,
        value: *const u8,
        value_size: usize,
    ) -> u32;
    fn proxy_remove_header_map_value(map: u32, key: *const u8, key_size: usize) -> u32;
    fn proxy_get_property(path: *const u8, path_size: usize, data: *mut *mut u8, size: *mut usize) -> u32;
    fn proxy_get_shared_data(
        key: *const u8,
        key_size: usize,
        data: *mut *mut u8,
        size: *mut usize,
        cas: *mut u32,
    ) -> u32;
    fn proxy_set_shared_data(key: *const u8, key_size: usize, value: *const u8, value_size: usize, cas: u32) -> u32;
    fn proxy_send_local_response(
        status: u32,
        details: *const u8,
        details_size: usize,
        body: *const u8,
        body_size: usize,
        headers: *const u8,
        headers_size: usize,
        grpc_status: i32,
    ) -> u32;
    fn proxy_define_metric(kind: u32, name: *const u8, name_size: usize, id: *mut u32) -> u32;
    fn proxy_increment_metric(id: u32, offset: i64) -> u32;
    fn proxy_record_metric(id: u32, value: u64) -> u32;
}

/// The wall clock; the epoch if the host has none.
pub(super) fn now() -> Timestamp {
    let mut nanos = 0;
    // SAFETY: `nanos` outlives the call.
    let _ = unsafe { proxy_get_current_time_nanoseconds(&mut nanos) };
    Timestamp(nanos / 1_000_000)
}

/// What the host would log of what this module says; `Info` if it does not tell.
pub(super) fn log_level() -> LevelFilter {
    let mut level = 2;
    // SAFETY: `level` outlives the call.
    let code = unsafe { proxy_get_log_level(&mut level) };
    match (code, level) {
        (0, 0) => LevelFilter::Trace,
        (0, 1) => LevelFilter::Debug,
        (0, 3) => LevelFilter::Warn,
        (0, 4 | 5) => LevelFilter::Error,
        _ => LevelFilter::Info,
    }
}

/// Asks for ticks on this root context.
pub(super) fn set_tick_period(period: Duration) -> Result<(), Refused> {
    // SAFETY: no memory is passed.
    status(unsafe { proxy_set_tick_period_milliseconds(u32::try_from(period.as_millis()).unwrap_or(u32::MAX)) })
}

/// At most `max` bytes from the start of a buffer; nothing if it is not there in this phase.
pub(super) fn buffer(kind: Buffer, max: usize) -> Option<Vec<u8>> {
    take(|data, size| {
        // SAFETY: `data` and `size` outlive the call.
        unsafe { proxy_get_buffer_bytes(kind as u32, 0, max, data, size) }
    })
    .ok()
}

/// Puts `bytes` in the place of a buffer. Hosts replace a whole buffer or add to one, nothing else.
pub(super) fn set_buffer(kind: Buffer, bytes: &[u8]) -> Result<(), Refused> {
    // More than any buffer, and no negative number to a host that takes it for signed.
    let whole = i32::MAX as usize;
    // SAFETY: `bytes` outlives the call.
    status(unsafe { proxy_set_buffer_bytes(kind as u32, 0, whole, bytes.as_ptr(), bytes.len()) })
}

/// A header's value; nothing if it is absent.
pub(super) fn header(map: Headers, name: &str) -> Option<Vec<u8>> {
    take(|data, size| {
        // SAFETY: `name`, `data` and `size` outlive the call.
        unsafe { proxy_get_header_map_value(map as u32, name.as_ptr(), name.len(), data, size) }
    })
    .ok()
}

/// Replaces every line of a header by one.
pub(super) fn set_header(map: Headers, name: &str, value: &[u8]) -> Result<(), Refused> {
    // SAFETY: `name` and `value` outlive the call.
    status(unsafe {
        proxy_replace_header_map_value(map as u32, name.as_ptr(), name.len(), value.as_ptr(), value.len())
    })
}

/// Adds a line to those that a header has.
pub(super) fn add_header(map: Headers, name: &str, value: &[u8]) -> Result<(), Refused> {
    // SAFETY: `name` and `value` outlive the call.
    status(unsafe { proxy_add_header_map_value(map as u32, name.as_ptr(), name.len(), value.as_ptr(), value.len()) })
}

/// Removes every line of a header.
pub(super) fn remove_header(map: Headers, name: &str) -> Result<(), Refused> {
    // SAFETY: `name` outlives the call.
    status(unsafe { proxy_remove_header_map_value(map as u32, name.as_ptr(), name.len()) })
}

/// A property of the host; nothing if it has none of that name now.
pub(super) fn property(path: &[&str]) -> Option<Vec<u8>> {
    try_property(path).ok()
}

/// A property of the host, or why there is none.
pub(super) fn try_property(path: &[&str]) -> Result<Vec<u8>, Refused> {
    let path = path.join("\0");
    take(|data, size| {
        // SAFETY: `path`, `data` and `size` outlive the call.
        unsafe { proxy_get_property(path.as_ptr(), path.len(), data, size) }
    })
}

/// What the proxy notes of an answer that went wrong; nothing if it keeps no such notes.
pub(super) fn response_flags() -> Option<u64> {
    let flags = property(&["response", "flags"])?;
    flags.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

impl Store for SharedData {
    fn get(&self, key: &[u8]) -> Found {
        let mut cas = 0;
        let value = take(|data, size| {
            // SAFETY: `key`, `data`, `size` and `cas` outlive the call.
            unsafe { proxy_get_shared_data(key.as_ptr(), key.len(), data, size, &mut cas) }
        })
        .ok();
        Found { value, cas }
    }

    fn set(&self, key: &[u8], value: &[u8], cas: u32) -> bool {
        // SAFETY: `key` and `value` outlive the call.
        let code = unsafe { proxy_set_shared_data(key.as_ptr(), key.len(), value.as_ptr(), value.len(), cas) };
        status(code).is_ok()
    }
}

/// Answers the request here. `details` is what the access log shows.
pub(super) fn local_response(code: u16, details: &str, headers: &[(&str, &str)], body: &[u8]) -> Result<(), Refused> {
    let headers = serialize(headers);
    // SAFETY: every slice outlives the call.
    status(unsafe {
        proxy_send_local_response(
            u32::from(code),
            details.as_ptr(),
            details.len(),
            body.as_ptr(),
            body.len(),
            headers.as_ptr(),
            headers.len(),
            -1,
        )
    })
}

/// Defines a metric or finds the one of that name.
pub(super) fn define_metric(kind: MetricKind, name: &str) -> Option<u32> {
    let mut id = 0;
    // SAFETY: `name` and `id` outlive the call.
    status(unsafe { proxy_define_metric(kind as u32, name.as_ptr(), name.len(), &mut id) }).ok().map(|()| id)
}

/// Adds to a counter.
pub(super) fn increment(metric: u32, by: u32) {
    // SAFETY: no memory is passed.
    let _ = unsafe { proxy_increment_metric(metric, i64::from(by)) };
}

/// Sets a gauge.
pub(super) fn record(metric: u32, value: u64) {
    // SAFETY: no memory is passed.
    let _ = unsafe { proxy_record_metric(metric, value) };
}

fn status(code: u32) -> Result<(), Refused> {
    if code == 0 { Ok(()) } else { Err(Refused(code)) }
}

fn take(call: impl FnOnce(*mut *mut u8, *mut usize) -> u32) -> Result<Vec<u8>, Refused> {
    let (mut data, mut size) = (null_mut::<u8>(), 0);
    status(call(&mut data, &mut size))?;
    if data.is_null() {
        return Ok(Vec::new());
    }
    // SAFETY: the host got `data` from our allocator as a boxed slice of `size` bytes and gives it up here.
    Ok(unsafe { Vec::from_raw_parts(data, size, size) })
}

/// The ABI's header map: count, then the sizes of each name and value, then the names and values, each with a NUL.
fn serialize(headers: &[(&str, &str)]) -> Vec<u8> {
    let word = |n: usize| u32::try_from(n).unwrap_or(u32::MAX).to_le_bytes();
    let mut bytes = word(headers.len()).to_vec();
    for (name, value) in headers {
        bytes.extend(word(name.len()));
        bytes.extend(word(value.len()));
    }
    for (name, value) in headers {
        for text in [name, value] {
            bytes.extend(text.as_bytes());
            bytes.push(0);
        }
    }
    bytes
}
