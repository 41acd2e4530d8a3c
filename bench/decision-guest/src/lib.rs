//! Times the picker's decisions inside the proxy's own WebAssembly engine, where they are taken.
//!
//! The configuration is a list of cases. Each tick runs one batch of decisions, so that the proxy's main thread stays
//! responsive, and each finished case writes a line to the log. `bench` writes the one and reads the other.

mod case;
mod fleet;
mod shared_data;

use std::collections::VecDeque;
use std::time::Duration;

use log::{error, info};
use proxy_wasm::traits::{Context, RootContext};
use proxy_wasm::types::{ContextType, LogLevel};
use serde::Deserialize;

use case::{Case, Running};

/// What the proxy calls first.
mod entry {
    proxy_wasm::main! {{
        proxy_wasm::set_log_level(super::LogLevel::Info);
        proxy_wasm::set_root_context(|_| Box::new(super::Root::default()));
    }}
}

/// The least a proxy grants.
const TICK: Duration = Duration::from_millis(1);

/// The whole configuration.
#[derive(Deserialize)]
struct Plan {
    cases: VecDeque<Case>,
}

#[derive(Default)]
struct Root {
    waiting: VecDeque<Case>,
    running: Option<Running>,
}

impl Context for Root {}

impl RootContext for Root {
    fn on_configure(&mut self, _: usize) -> bool {
        let written = self.get_plugin_configuration().unwrap_or_default();
        match serde_json::from_slice::<Plan>(&written) {
            Ok(plan) => self.waiting = plan.cases,
            Err(error) => error!("no plan: {error}"),
        }
        self.set_tick_period(TICK);
        !self.waiting.is_empty()
    }

    fn on_tick(&mut self) {
        let Some(running) = &mut self.running else {
            match self.waiting.pop_front().map(Running::new) {
                Some(Ok(running)) => self.running = Some(running),
                Some(Err(why)) => error!("no case: {why}"),
                None => self.set_tick_period(Duration::ZERO),
            }
            return;
        };
        if let Some(nanos) = running.batch() {
            info!("decision: {nanos:?}");
            self.running = None;
        }
    }

    fn get_type(&self) -> Option<ContextType> {
        Some(ContextType::HttpContext)
    }
}
