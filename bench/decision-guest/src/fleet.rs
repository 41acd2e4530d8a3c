//! A pool of which everything is known.

use std::rc::Rc;

use endpoint_picker::clock::Timestamp;
use endpoint_picker::config::Config;
use endpoint_picker::fleet::{Endpoint, Health, Snapshot};
use endpoint_picker::picker::Picker;
use endpoint_picker::scrape::Reading;
use endpoint_picker::store::Store;

pub(crate) const NOW: Timestamp = Timestamp(1_796_000_000_000);

/// A picker whose endpoints were all scraped just now.
pub(crate) fn picker(config: Config, store: &dyn Store) -> Picker {
    let endpoints = config.pool.endpoints.iter().zip(0..).map(|(target, at): (_, u32)| {
        let reading = Reading {
            waiting: Some(at % 3),
            running: Some(at % 17),
            kv_usage: Some(f64::from(at % 10) / 10.0),
            block_size: Some(16),
            num_blocks: Some(40_000),
            ..Reading::default()
        };
        let mut endpoint = Endpoint::new(target.address);
        endpoint.health = Health::Serving;
        endpoint.signals.update(reading, NOW);
        endpoint
    });
    let snapshot = Snapshot { version: 1, seed: 1, endpoints: endpoints.collect() };
    let mut picker = Picker::new(Rc::new(config), 1);
    picker.refresh(store, snapshot, NOW);
    picker
}
