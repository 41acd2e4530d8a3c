//! The host functions that the module imports.

#![allow(unsafe_code)]

use std::slice;

use proxy_wasm::types::{BufferType, LogLevel, MapType, MetricType, Status};

use super::exports;
use super::headers::Headers;
use super::stream::{Access, Reply};
use super::vm::{State, state};

/// Counts the call for the request whose callback runs.
fn called<T>(name: &'static str, act: impl FnOnce(&mut State) -> T) -> T {
    state(|state| {
        if let Some(stream) = state.stream() {
            *stream.calls.entry(name).or_default() += 1;
        }
        act(state)
    })
}

/// SAFETY, here and below: the module passes slices and places of its own that outlive the call.
unsafe fn read<'a>(data: *const u8, size: usize) -> &'a [u8] {
    if data.is_null() { &[] } else { unsafe { slice::from_raw_parts(data, size) } }
}

unsafe fn give(found: Result<Vec<u8>, Status>, data: *mut *mut u8, size: *mut usize) -> Status {
    let value = match found {
        Ok(value) => value,
        Err(status) => return status,
    };
    // Nothing is allocated for an empty value.
    if !value.is_empty() {
        unsafe {
            *data = exports::allocate(value.len());
            slice::from_raw_parts_mut(*data, value.len()).copy_from_slice(&value);
        }
    }
    unsafe { *size = value.len() };
    Status::Ok
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_log(level: LogLevel, message: *const u8, size: usize) -> Status {
    let message = String::from_utf8_lossy(unsafe { read(message, size) }).into_owned();
    called("log", |state| state.world().logs.push((level, message)));
    Status::Ok
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_get_log_level(level: *mut LogLevel) -> Status {
    let logs = called("get_log_level", |state| state.world().logs_from);
    unsafe { *level = logs };
    Status::Ok
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_get_current_time_nanoseconds(time: *mut u64) -> Status {
    let now = called("get_current_time", |state| {
        let world = state.world();
        world.now.saturating_add_signed(world.clock_set)
    });
    unsafe { *time = now * 1_000_000 };
    Status::Ok
}

#[unsafe(no_mangle)]
extern "C" fn proxy_set_tick_period_milliseconds(period: u32) -> Status {
    state(|state| state.world().tick_every(state.vm, state.effective, u64::from(period)));
    Status::Ok
}

#[unsafe(no_mangle)]
extern "C" fn proxy_set_effective_context(context: u32) -> Status {
    state(|state| state.effective = context);
    Status::Ok
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_get_buffer_bytes(
    kind: BufferType,
    start: usize,
    max: usize,
    data: *mut *mut u8,
    size: *mut usize,
) -> Status {
    let found = called("get_buffer_bytes", |state| {
        let root = state.effective;
        let whole = match kind {
            BufferType::HttpRequestBody => state.stream().map(|stream| stream.body.clone()),
            BufferType::HttpResponseBody => state.stream().map(|stream| stream.response_body.clone()),
            BufferType::HttpCallResponseBody => state.answer.as_ref().map(|answer| answer.body.clone()),
            BufferType::PluginConfiguration => state.roots.get(&root).map(|root| root.configuration.clone()),
            other => panic!("the module reads {other:?}"),
        };
        let whole = whole.ok_or(Status::NotFound)?;
        let end = start.saturating_add(max).min(whole.len());
        whole.get(start..end).map(<[u8]>::to_vec).ok_or(Status::BadArgument)
    });
    unsafe { give(found, data, size) }
}

/// A whole buffer is replaced or added to, as in Envoy; a part of one is not.
#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_set_buffer_bytes(
    kind: BufferType,
    start: usize,
    length: usize,
    data: *const u8,
    size: usize,
) -> Status {
    let new = unsafe { read(data, size) };
    called("set_buffer_bytes", |state| {
        if let Some(status) = state.world().faults.body {
            return status;
        }
        let buffer = match kind {
            BufferType::HttpRequestBody => state.stream().map(|stream| &mut stream.body),
            BufferType::HttpResponseBody => state.stream().map(|stream| &mut stream.response_body),
            other => panic!("the module writes {other:?}"),
        };
        match buffer {
            None => return Status::NotFound,
            Some(buffer) if start == 0 && length == 0 => _ = buffer.splice(..0, new.iter().copied()),
            Some(buffer) if start == 0 && length >= buffer.len() => *buffer = new.to_vec(),
            Some(buffer) if start > 0 && start >= buffer.len() => buffer.extend(new),
            Some(_) => return Status::BadArgument,
        }
        Status::Ok
    })
}

/// The header map and what may be done with it now.
fn map(state: &mut State, kind: MapType) -> Option<(&mut Headers, Access)> {
    match kind {
        MapType::HttpRequestHeaders => state.stream().map(|s| (&mut s.request, s.request_access)),
        MapType::HttpResponseHeaders => state.stream().map(|s| (&mut s.response, s.response_access)),
        MapType::HttpCallResponseHeaders => state.answer.as_mut().map(|answer| (&mut answer.headers, Access::Read)),
        other => panic!("the module looks at {other:?}"),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_get_header_map_value(
    kind: MapType,
    key: *const u8,
    key_size: usize,
    data: *mut *mut u8,
    size: *mut usize,
) -> Status {
    let key = unsafe { read(key, key_size) };
    let found = called("get_header_map_value", |state| match map(state, kind) {
        Some((map, access)) if access != Access::Gone => map.get(key).ok_or(Status::NotFound),
        _ => Err(Status::BadArgument),
    });
    unsafe { give(found, data, size) }
}

fn change(name: &'static str, kind: MapType, act: impl FnOnce(&mut Headers)) -> Status {
    called(name, |state| {
        let fault = state.world().faults.change.filter(|_| kind == MapType::HttpRequestHeaders);
        match (fault, map(state, kind)) {
            (None, Some((map, Access::Change))) => act(map),
            (fault, _) => return fault.unwrap_or(Status::BadArgument),
        }
        Status::Ok
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_replace_header_map_value(
    kind: MapType,
    key: *const u8,
    key_size: usize,
    value: *const u8,
    value_size: usize,
) -> Status {
    let (key, value) = unsafe { (read(key, key_size), read(value, value_size)) };
    change("replace_header_map_value", kind, |map| map.replace(key, value))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_add_header_map_value(
    kind: MapType,
    key: *const u8,
    key_size: usize,
    value: *const u8,
    value_size: usize,
) -> Status {
    let (key, value) = unsafe { (read(key, key_size), read(value, value_size)) };
    change("add_header_map_value", kind, |map| map.add(key, value))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_remove_header_map_value(kind: MapType, key: *const u8, key_size: usize) -> Status {
    let key = unsafe { read(key, key_size) };
    change("remove_header_map_value", kind, |map| map.remove(key))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_get_property(
    path: *const u8,
    path_size: usize,
    data: *mut *mut u8,
    size: *mut usize,
) -> Status {
    let path = unsafe { read(path, path_size) };
    let found = called("get_property", |state| {
        let root = state.effective;
        let found = match path {
            b"plugin_root_id" => state.roots.get(&root).map(|root| root.id.to_owned()),
            b"upstream\0address" => state.stream().and_then(|stream| stream.upstream.clone()),
            b"response\0code_details" => {
                let details = |made_up| if made_up { "upstream_reset_before_response_started" } else { "via_upstream" };
                state.stream().map(|stream| details(stream.made_up).to_owned())
            }
            b"response\0flags" => {
                return state.stream().map(|stream| stream.flags.to_le_bytes().to_vec()).ok_or(Status::NotFound);
            }
            b"metadata\0filter_metadata\0envoy.lb.subset_hint\0x-gateway-destination-endpoint-subset" => {
                return state.stream().and_then(|stream| stream.subset.clone()).unwrap_or(Err(Status::NotFound));
            }
            _ => None,
        };
        found.map(String::into_bytes).ok_or(Status::NotFound)
    });
    unsafe { give(found, data, size) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_get_shared_data(
    key: *const u8,
    key_size: usize,
    data: *mut *mut u8,
    size: *mut usize,
    cas: *mut u32,
) -> Status {
    let key = unsafe { read(key, key_size) };
    let found = called("get_shared_data", |state| {
        let mut world = state.world();
        let (mut value, cas) = world.shared.get(key).ok_or(Status::NotFound)?;
        if world.faults.torn.as_deref() == Some(key) {
            let half = value.len() / 2;
            value[half..].fill(0);
        }
        Ok((value, cas))
    });
    let found = found.map(|(value, token)| {
        unsafe { *cas = token };
        value
    });
    unsafe { give(found, data, size) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_set_shared_data(
    key: *const u8,
    key_size: usize,
    value: *const u8,
    value_size: usize,
    cas: u32,
) -> Status {
    let (key, value) = unsafe { (read(key, key_size), read(value, value_size)) };
    let interrupt = state(|state| state.world().faults.interrupt.take_if(|(vm, _)| vm.id != state.vm));
    if let Some((vm, root)) = interrupt {
        vm.run(move || exports::tick(root));
    }
    called("set_shared_data", |state| {
        let mut world = state.world();
        let host = world.host;
        world.faults.write.unwrap_or_else(|| world.shared.set(host, key, value, cas))
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_http_call(
    cluster: *const u8,
    cluster_size: usize,
    headers: *const u8,
    headers_size: usize,
    _body: *const u8,
    _body_size: usize,
    _trailers: *const u8,
    _trailers_size: usize,
    timeout: u32,
    token: *mut u32,
) -> Status {
    let (cluster, headers) = unsafe { (read(cluster, cluster_size), read(headers, headers_size)) };
    let cluster = String::from_utf8(cluster.to_vec()).unwrap();
    let headers = Headers::parse(headers);
    let called = called("http_call", |state| {
        assert!(state.stream().is_none(), "the request path calls out");
        let (vm, root) = (state.vm, state.effective);
        state.world().call(vm, root, cluster, headers, u64::from(timeout))
    });
    match called {
        Ok(call) => {
            unsafe { *token = call };
            Status::Ok
        }
        Err(status) => status,
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_send_local_response(
    status: u32,
    details: *const u8,
    details_size: usize,
    body: *const u8,
    body_size: usize,
    headers: *const u8,
    headers_size: usize,
    _grpc_status: i32,
) -> Status {
    let reply = Reply {
        status: u16::try_from(status).unwrap(),
        details: String::from_utf8(unsafe { read(details, details_size) }.to_vec()).unwrap(),
        headers: Headers::parse(unsafe { read(headers, headers_size) }),
        body: unsafe { read(body, body_size) }.to_vec(),
    };
    called("send_local_response", |state| match state.stream() {
        Some(stream) => {
            stream.reply = Some(reply);
            Status::Ok
        }
        None => Status::BadArgument,
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_define_metric(kind: MetricType, name: *const u8, size: usize, id: *mut u32) -> Status {
    let name = std::str::from_utf8(unsafe { read(name, size) }).unwrap();
    unsafe { *id = called("define_metric", |state| state.world().metric(kind, name)) };
    Status::Ok
}

#[unsafe(no_mangle)]
extern "C" fn proxy_increment_metric(id: u32, offset: i64) -> Status {
    called("increment_metric", |state| match state.world().metrics.get_mut(id as usize) {
        Some(metric) if metric.kind == MetricType::Counter && offset < 0 => Status::BadArgument,
        Some(metric) => {
            metric.value = metric.value.wrapping_add_signed(offset);
            Status::Ok
        }
        None => Status::NotFound,
    })
}

#[unsafe(no_mangle)]
extern "C" fn proxy_record_metric(id: u32, value: u64) -> Status {
    called("record_metric", |state| match state.world().metrics.get_mut(id as usize) {
        Some(metric) => {
            metric.value = value;
            Status::Ok
        }
        None => Status::NotFound,
    })
}

/// What the SDK links but the module must not use: a host lacks it, or it panics on bytes from outside.
macro_rules! refused {
    ($($name:ident)*) => {
        $(
            #[unsafe(no_mangle)]
            extern "C" fn $name() -> Status {
                panic!(concat!("the module calls ", stringify!($name)))
            }
        )*
    };
}

refused! {
    proxy_call_foreign_function proxy_close_stream proxy_continue_stream proxy_dequeue_shared_queue proxy_done
    proxy_enqueue_shared_queue proxy_get_header_map_pairs proxy_get_metric proxy_get_status
    proxy_grpc_call proxy_grpc_cancel proxy_grpc_close proxy_grpc_send proxy_grpc_stream proxy_register_shared_queue
    proxy_resolve_shared_queue proxy_set_header_map_pairs proxy_set_property
}
