//! A plugin instance: its configuration, its role, its ticks.

use std::rc::Rc;
use std::time::Duration;

use log::{error, info};
use proxy_wasm::traits::{Context, HttpContext, RootContext};
use proxy_wasm::types::ContextType;

use super::abi::{self, Buffer, SharedData};
use super::request::Request;
use super::scraper::Scraper;
use super::settings;
use super::worker::Worker;
use crate::config;
use crate::fleet::Lease;
use crate::store::Store;

/// Fine enough to spread scrapes over a tenth of a second, coarse enough to cost nothing.
const TICK: Duration = Duration::from_millis(20);

/// More than any configuration.
const MAX_CONFIGURATION: usize = 16 << 20;

/// The root context of either role. Empty until it is configured.
#[derive(Default)]
pub(super) struct Root {
    plugin: Option<Plugin>,
}

struct Plugin {
    scraper: Scraper,
    worker: Rc<Worker>,
}

impl Root {
    fn configure(&mut self) -> Result<(), String> {
        let by_right = match abi::property(&["plugin_root_id"]).unwrap_or_default().as_slice() {
            b"scraper" => true,
            b"picker" => false,
            other => {
                let other = String::from_utf8_lossy(other);
                return Err(format!("root_id: `{other}` is not a role; known are scraper, picker"));
            }
        };
        let passed = abi::buffer(Buffer::PluginConfiguration, MAX_CONFIGURATION).unwrap_or_default();
        let config = config::load(&settings::json(passed)).map_err(|error| error.to_string())?;
        info!("pool {}: {} endpoints, {:?}", config.pool.name, config.pool.endpoints.len(), config.profile);
        let config = Rc::new(config);
        let scraper = Scraper::new(config.clone(), by_right, abi::now());
        let worker = Rc::new(Worker::new(config));
        // A worker that was just reloaded need not wait for a tick.
        worker.refresh(None);
        self.plugin = Some(Plugin { scraper, worker });
        abi::set_tick_period(TICK).map_err(|status| format!("the proxy gives no ticks: {status:?}"))
    }
}

impl Context for Root {
    fn on_http_call_response(&mut self, call: u32, _: usize, body_size: usize, _: usize) {
        let Some(Plugin { scraper, worker }) = &mut self.plugin else { return };
        scraper.answered(call, body_size, &mut worker.metrics.borrow_mut());
    }
}

impl RootContext for Root {
    fn on_configure(&mut self, _: usize) -> bool {
        self.configure().inspect_err(|message| error!("configuration refused: {message}")).is_ok()
    }

    fn on_tick(&mut self) {
        let Some(Plugin { scraper, worker }) = &mut self.plugin else { return };
        let found = SharedData.get(&worker.keys.lease);
        let lease = found.value.and_then(|value| Lease::decode(&worker.keys.lease, &value));
        if let (Some(lease), false) = (&lease, scraper.is_singleton()) {
            worker.refresh(Some(lease.snapshot));
        }
        let now = abi::now();
        if !scraper.is_singleton() {
            worker.picker.borrow_mut().tick(&*worker.store, now);
        }
        scraper.tick(lease.as_ref(), found.cas, &mut worker.metrics.borrow_mut(), now);
    }

    fn get_type(&self) -> Option<ContextType> {
        Some(ContextType::HttpContext)
    }

    fn create_http_context(&self, _: u32) -> Option<Box<dyn HttpContext>> {
        Some(Box::new(Request::new(self.plugin.as_ref().map(|plugin| plugin.worker.clone()))))
    }
}
