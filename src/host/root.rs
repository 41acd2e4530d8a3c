//! A plugin instance: its configuration, its role, its ticks.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use log::{error, info};
use proxy_wasm::traits::{Context, HttpContext, RootContext};
use proxy_wasm::types::ContextType;

use super::abi::{self, Buffer};
use super::metrics::Metrics;
use super::pools::Pools;
use super::request::Request;
use super::scraper::Scraper;
use super::settings;
use super::worker::Worker;
use crate::config;

/// Fine enough to spread scrapes over a tenth of a second, coarse enough to cost nothing.
const TICK: Duration = Duration::from_millis(20);

/// An operator may change the log level while the proxy runs; once a second is soon enough.
const TICKS_PER_LOG_LEVEL: u32 = 50;

/// More than any configuration.
const MAX_CONFIGURATION: usize = 16 << 20;

/// The root context of either role. Empty until it is configured.
#[derive(Default)]
pub(super) struct Root {
    plugin: Option<Plugin>,
}

struct Plugin {
    /// One for each pool.
    scrapers: Vec<Scraper>,
    /// The singleton has none.
    pools: Option<Rc<Pools>>,
    ticks: u32,
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
        log::set_max_level(abi::log_level());
        let passed = abi::buffer(Buffer::PluginConfiguration, MAX_CONFIGURATION).unwrap_or_default();
        let config::Pools { configs, routes } =
            config::load_pools(&settings::json(passed)).map_err(|error| error.to_string())?;
        let (mut scrapers, mut workers) = (Vec::new(), Vec::new());
        for config in configs {
            let config = Rc::new(config);
            info!("pool {}: {} endpoints, {:?}", config.pool.name, config.pool.endpoints.len(), config.profile);
            let suffix = if routes.pools > 1 { format!("_{}", config.pool.name) } else { String::new() };
            let metrics = Rc::new(RefCell::new(Metrics::new(suffix)));
            if !by_right {
                let worker = Worker::new(config.clone(), metrics.clone());
                // A worker that was just reloaded need not wait for a tick.
                worker.refresh(None);
                workers.push(Rc::new(worker));
            }
            scrapers.push(Scraper::new(config, metrics, by_right, abi::now()));
        }
        let pools = (!by_right).then(|| Rc::new(Pools { workers, routes }));
        self.plugin = Some(Plugin { scrapers, pools, ticks: 0 });
        abi::set_tick_period(TICK).map_err(|status| format!("the proxy gives no ticks: {status:?}"))
    }
}

impl Context for Root {
    fn on_http_call_response(&mut self, call: u32, _: usize, body_size: usize, _: usize) {
        if let Some(Plugin { scrapers, .. }) = &mut self.plugin {
            scrapers.iter_mut().for_each(|scraper| scraper.answered(call, body_size));
        }
    }
}

impl RootContext for Root {
    fn on_configure(&mut self, _: usize) -> bool {
        self.configure().inspect_err(|message| error!("configuration refused: {message}")).is_ok()
    }

    fn on_tick(&mut self) {
        let Some(Plugin { scrapers, pools, ticks }) = &mut self.plugin else { return };
        *ticks = ticks.wrapping_add(1);
        if *ticks % TICKS_PER_LOG_LEVEL == 0 {
            log::set_max_level(abi::log_level());
        }
        for (pool, scraper) in scrapers.iter_mut().enumerate() {
            let (lease, cas) = scraper.lease();
            let now = abi::now();
            if let Some(worker) = pools.as_ref().and_then(|pools| pools.get(pool)) {
                if let Some(lease) = &lease {
                    worker.refresh(Some(lease.snapshot));
                }
                worker.picker.borrow_mut().tick(&*worker.store, now);
                worker.tell_failing();
            }
            scraper.tick(lease.as_ref(), cas, now);
        }
    }

    fn get_type(&self) -> Option<ContextType> {
        Some(ContextType::HttpContext)
    }

    fn create_http_context(&self, _: u32) -> Option<Box<dyn HttpContext>> {
        Some(Box::new(Request::new(self.plugin.as_ref().and_then(|plugin| plugin.pools.clone()))))
    }
}
