//! The pools of a worker, and which of them a request goes to.

use std::rc::Rc;

use super::abi::{self, Headers};
use super::worker::Worker;
use super::{BASE_MODEL, MODEL};
use crate::routes::{Route, Routes};

/// What the requests of one worker have in common.
pub(super) struct Pools {
    pub(super) workers: Vec<Rc<Worker>>,
    pub(super) routes: Routes,
}

impl Pools {
    pub(super) fn get(&self, pool: usize) -> Option<&Rc<Worker>> {
        self.workers.get(pool)
    }

    /// The one for requests that name no model; whatever is the same for all pools can be asked of it.
    pub(super) fn fallback(&self) -> Option<&Rc<Worker>> {
        self.workers.get(self.routes.fallback())
    }

    /// Whether some requests go to another model than they name.
    pub(super) fn rename_models(&self) -> bool {
        let rules = self.fallback().is_some_and(|worker| !worker.config.model_rewrites.is_empty());
        rules || self.routes.choice.is_some()
    }

    /// What a client says of its model in headers must not be taken for what its body says.
    pub(super) fn distrust(&self) {
        if self.routes.tells {
            for name in [MODEL, BASE_MODEL] {
                let _ = abi::remove_header(Headers::Request, name);
            }
        }
    }

    /// Tells the model in headers.
    ///
    /// The proxy then looks for its route once more: Envoy does so whenever a module of this ABI version changes a header.
    pub(super) fn tell(&self, route: &Route) {
        // In a header, other bytes could be taken for its end.
        let is_plain = |model: &&[u8]| !model.iter().any(u8::is_ascii_control);
        if let Some(model) = route.model.as_deref().filter(is_plain).filter(|_| self.routes.tells) {
            let _ = abi::set_header(Headers::Request, MODEL, model);
            let _ = abi::set_header(Headers::Request, BASE_MODEL, self.routes.base(model));
        }
    }
}
