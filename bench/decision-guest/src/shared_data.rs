//! The proxy's shared data as a store.

use endpoint_picker::store::{Found, Store};
use proxy_wasm::hostcalls;

pub(crate) struct SharedData;

impl Store for SharedData {
    fn get(&self, key: &[u8]) -> Found {
        let (value, cas) = hostcalls::get_shared_data(&text(key)).unwrap_or_default();
        Found { value, cas: cas.unwrap_or_default() }
    }

    fn set(&self, key: &[u8], value: &[u8], cas: u32) -> bool {
        hostcalls::set_shared_data(&text(key), Some(value), Some(cas)).is_ok()
    }
}

/// The SDK takes keys that are text.
fn text(key: &[u8]) -> String {
    key.iter().map(|byte| char::from(*byte)).collect()
}
