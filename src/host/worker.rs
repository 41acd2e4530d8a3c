//! What the requests of one worker share.

use std::cell::RefCell;
use std::rc::Rc;

use super::abi::SharedData;
use super::metrics::Metrics;
use super::{Keys, random};
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
    pub(super) metrics: RefCell<Metrics>,
}

impl Worker {
    pub(super) fn new(config: Rc<Config>) -> Self {
        Self {
            keys: Keys::of(&config.pool.name),
            store: match config.ledger {
                Sharing::Shared => Box::new(SharedData),
                Sharing::Private => Box::<Memory>::default(),
            },
            picker: RefCell::new(Picker::new(config.clone(), random())),
            metrics: RefCell::default(),
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
            picker.refresh(snapshot);
        }
    }
}
