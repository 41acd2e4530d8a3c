//! What the requests of one worker share.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use super::abi::{self, SharedData};
use super::metrics::Metrics;
use super::{Keys, random};
use crate::clock::Timestamp;
use crate::config::{Config, Sharing};
use crate::fleet::Snapshot;
use crate::picker::Picker;
use crate::store::{Memory, Store};

/// The picker of a worker and what goes with it.
pub(super) struct Worker {
    pub(super) keys: Keys,
    pub(super) config: Rc<Config>,
    /// Where ledger and prefix index lie.
    pub(super) store: Box<dyn Store>,
    pub(super) picker: RefCell<Picker>,
    pub(super) metrics: Rc<RefCell<Metrics>>,
    complained: Cell<Timestamp>,
    /// Endpoints that were failing when last told.
    failing: Cell<usize>,
}

impl Worker {
    pub(super) fn new(config: Rc<Config>, metrics: Rc<RefCell<Metrics>>) -> Self {
        Self {
            keys: Keys::of(&config.pool.name),
            store: match config.ledger {
                Sharing::Shared => Box::new(SharedData),
                Sharing::Private => Box::<Memory>::default(),
            },
            picker: RefCell::new(Picker::new(config.clone(), random())),
            metrics,
            complained: Cell::default(),
            failing: Cell::new(0),
            config,
        }
    }

    /// Reads the snapshot if its version is another than the one in use.
    pub(super) fn refresh(&self, version: Option<u64>) {
        let mut picker = self.picker.borrow_mut();
        if version.is_some() && picker.snapshot_version() == version {
            return;
        }
        let value = SharedData.get(&self.keys.snapshot).value;
        if let Some(snapshot) = value.and_then(|value| Snapshot::decode(&self.keys.snapshot, &value)) {
            picker.refresh(&*self.store, snapshot, abi::now());
        }
    }

    /// Tells how many endpoints are failing, if that changed.
    pub(super) fn tell_failing(&self) {
        let failing = self.picker.borrow().failing();
        if self.failing.replace(failing) != failing {
            self.metrics.borrow_mut().failing(failing as u64);
        }
    }

    /// Whether a fault that every request has shall be told: once a minute is enough.
    pub(super) fn may_complain(&self, now: Timestamp) -> bool {
        let long_ago = now.since(self.complained.get()) >= Duration::from_secs(60);
        if long_ago {
            self.complained.set(now);
        }
        long_ago
    }
}
