//! An endpoint picker for model servers that lives inside the proxy.
//!
//! A metrics text flows `scrape` -> `fleet` -> snapshot; a request body flows `prompt` -> `prefix` -> `schedule`; the
//! picked address and the entry in the `ledger` come out. Nothing here calls the proxy: time, randomness and every byte
//! come in as arguments and what is to be done goes out as values. Only `host` knows Proxy-Wasm.

pub mod clock;
pub mod cold;
pub mod config;
pub mod cost;
mod decimal;
pub mod envelope;
pub mod fleet;
pub mod headers;
pub mod health;
#[cfg(feature = "host")]
pub mod host;
pub mod id;
pub mod learned;
pub mod ledger;
pub mod objectives;
pub mod outcome;
mod parameters;
pub mod period;
pub mod picker;
pub mod prefix;
pub mod prompt;
pub mod rendezvous;
pub mod reply;
pub mod rewrite;
pub mod routes;
pub mod saturation;
pub mod schedule;
pub mod scrape;
pub mod session;
pub mod store;
mod strict;
pub mod subset;
pub mod usage;
