//! The Proxy-Wasm module: entry point, root contexts, and nothing that decides.

mod abi;
mod metrics;
mod request;
mod root;
mod scraper;
mod settings;
mod surveyor;
mod worker;

/// What the proxy calls first. Its exports are the ABI's, not for Rust callers.
mod entry {
    use proxy_wasm::types::LogLevel;

    proxy_wasm::main! {{
        proxy_wasm::set_log_level(LogLevel::Info);
        proxy_wasm::set_root_context(|_| Box::new(super::root::Root::default()));
    }}
}

/// The header that names the destination; the proxy's override policy reads it.
const DESTINATION: &str = "x-gateway-destination-endpoint";

/// The header of an answer that tells why its server was chosen.
const DECISION: &str = "x-endpoint-picker-decision";

/// Where a pool's records lie in shared data.
#[derive(Clone, Debug)]
struct Keys {
    lease: Vec<u8>,
    snapshot: Vec<u8>,
}

impl Keys {
    fn of(pool: &str) -> Self {
        let key = |what: &str| format!("endpoint-picker/{pool}/{what}").into_bytes();
        Self { lease: key("lease"), snapshot: key("snapshot") }
    }
}

/// 64 random bits.
fn random() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish()
}
