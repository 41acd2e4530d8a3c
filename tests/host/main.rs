//! The module in a mock proxy: what it promises to the people who run it, through the interface it ships with.
#![cfg(test)]

mod bodies;
mod client_headers;
mod configuration;
mod disaggregation;
mod discovery;
mod fixture;
mod in_flight;
mod no_endpoint;
mod passive_health;
mod pools;
mod protocol;
mod proxy;
mod rewrite;
mod routing;
mod saturation;
mod scraping;
mod session;
mod shared_data;
mod shedding;
mod takeover;
mod usage;
mod virtual_clock;
