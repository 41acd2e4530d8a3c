//! The Proxy-Wasm module: entry point, root contexts, and nothing that decides.

mod abi;
mod metrics;
mod pools;
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

/// The header that names the server which reads the prompt, `ip:port`, if it is another one; the routing sidecar of the one
/// that generates reads it.
const PREFILLER: &str = "x-prefiller-host-port";

/// The header of an answer that tells why its server was chosen.
const DECISION: &str = "x-endpoint-picker-decision";

/// The headers that tell a request's model and the base model of an adapter; routes of the proxy can go by them.
const MODEL: &str = "x-gateway-model-name";
const BASE_MODEL: &str = "x-gateway-base-model-name";

/// The header that tells a server which model was put in the place of the client's. The reference endpoint picker lets a
/// client choose with it; here rules choose.
const MODEL_REWRITE: &str = "x-llm-d-model-name-rewrite";

/// Its older name.
const OLD_MODEL_REWRITE: &str = "x-gateway-model-name-rewrite";

/// The dynamic metadata in which the proxy says that one of some endpoints is to be picked.
const SUBSET: [&str; 4] =
    ["metadata", "filter_metadata", "envoy.lb.subset_hint", "x-gateway-destination-endpoint-subset"];

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

/// The number in a header.
fn number<N: std::str::FromStr>(digits: &[u8]) -> Option<N> {
    std::str::from_utf8(digits).ok()?.trim().parse().ok()
}

/// 64 random bits.
fn random() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish()
}
