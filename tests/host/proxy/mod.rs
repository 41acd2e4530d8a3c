//! A mock proxy: it defines the host functions natively and calls the module's real exports.
//!
//! A [`Proxy`] has workers, each a VM of its own, that share one store, one virtual clock and one world of model servers.
//! Nothing happens by itself: a test lets time pass, and sends requests.

mod exchange;
mod exports;
mod headers;
mod host;
mod imports;
mod server;
mod shared_data;
mod stream;
mod vm;
mod world;

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

pub use exchange::{Exchange, Request};
use host::Host;
pub use proxy_wasm::types::Status;
pub use server::Server;
use vm::{Root, Vm, state};
pub use world::{Call, SCRAPE_DESTINATION};
use world::{Event, World};

/// A proxy with the module loaded.
pub struct Proxy {
    world: Arc<Mutex<World>>,
    configuration: String,
    vms: Mutex<Vec<Arc<Vm>>>,
}

/// A root context in a VM of its own.
#[derive(Clone)]
pub struct Worker {
    vm: Arc<Vm>,
    root: u32,
}

impl Proxy {
    /// An Envoy whose plugins all have `configuration`.
    pub fn envoy(configuration: impl ToString) -> Self {
        let world = Arc::new(Mutex::new(World::new(Host::ENVOY)));
        Self { world, configuration: configuration.to_string(), vms: Mutex::default() }
    }

    /// The world outside the VMs: statistics, log, shared data, faults.
    pub fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap()
    }

    /// From now on scrapes of `address` bring this.
    pub fn server(&self, address: &str, server: Server) {
        self.world().servers.insert(address.into(), server);
    }

    /// From now on calls to the cluster of this name bring this.
    pub fn cluster(&self, name: &str, server: Server) {
        self.world().clusters.insert(name.into(), server);
    }

    /// The bootstrap singleton.
    pub fn scraper(&self) -> Worker {
        self.start("scraper", &self.configuration).expect("the configuration is refused")
    }

    /// A worker's plugin in the filter chain.
    pub fn worker(&self) -> Worker {
        self.start("picker", &self.configuration).expect("the configuration is refused")
    }

    /// A plugin with any root id and configuration; or else what it logged.
    pub fn start(&self, root_id: &'static str, configuration: impl AsRef<[u8]>) -> Result<Worker, String> {
        let worker = self.load(root_id, configuration);
        let root = worker.root;
        if worker.vm.run(move || exports::start(root)) {
            return Ok(worker);
        }
        worker.traps();
        Err(self.world().logs.last().map(|(_, line)| line.clone()).unwrap_or_default())
    }

    /// A plugin that the proxy never got to configure.
    pub fn load(&self, root_id: &'static str, configuration: impl AsRef<[u8]>) -> Worker {
        let vm = {
            let mut vms = self.vms.lock().unwrap();
            let vm = Arc::new(Vm::start(vms.len(), self.world.clone()));
            vms.push(vm.clone());
            vm
        };
        Self::load_into(vm, root_id, configuration)
    }

    /// The main thread's plugin of the filter chain, which has one VM with the bootstrap singleton.
    pub fn worker_beside(&self, scraper: &Worker) -> Worker {
        let worker = Self::load_into(scraper.vm.clone(), "picker", &self.configuration);
        let root = worker.root;
        assert!(worker.vm.run(move || exports::start(root)), "the configuration is refused");
        worker
    }

    fn load_into(vm: Arc<Vm>, root_id: &'static str, configuration: impl AsRef<[u8]>) -> Worker {
        let configuration = configuration.as_ref().to_vec();
        let root = vm.run(move || {
            let root = state(|state| {
                let root = state.new_context();
                state.roots.insert(root, Root { id: root_id, configuration });
                root
            });
            exports::create(root, 0);
            root
        });
        Worker { vm, root }
    }

    /// Lets time pass: timers fire, scrapes are answered.
    pub fn run_for(&self, span: Duration) {
        let end = self.world().now + u64::try_from(span.as_millis()).unwrap();
        loop {
            let event = self.world().next_event(end);
            let vm = |id: usize| self.vms.lock().unwrap()[id].clone();
            match event {
                Some(Event::Tick(id, root)) => vm(id).run(move || exports::tick(root)),
                Some(Event::Answer(id, root, token, answer)) => {
                    vm(id).run(move || exports::answer(root, token, answer));
                }
                None => break,
            }
        }
        self.world().now = end;
    }

    /// The scrapes so far.
    pub fn scrapes(&self) -> Vec<Call> {
        let calls = self.world().calls.clone();
        calls.into_iter().filter(|call| call.headers.get(SCRAPE_DESTINATION).is_some()).collect()
    }

    /// The calls so far to a cluster of one server.
    pub fn calls_to(&self, cluster: &str) -> Vec<Call> {
        self.world().calls.iter().filter(|call| call.cluster == cluster).cloned().collect()
    }

    /// A metric's value; 0 if it was never defined.
    pub fn metric(&self, name: &str) -> u64 {
        self.world().metrics.iter().find(|metric| metric.name == name).map_or(0, |metric| metric.value)
    }

    /// Whether a line like this was logged.
    pub fn logged(&self, part: &str) -> bool {
        self.world().logs.iter().any(|(_, line)| line.contains(part))
    }
}

impl Worker {
    /// Sends a request through the filter.
    pub fn send(&self, request: Request) -> Exchange {
        request.send(&self.vm, self.root)
    }

    /// A request without a body.
    pub fn get(&self, path: &str) -> Exchange {
        self.send(Request::get(path))
    }

    /// A request with a body that arrives at once.
    pub fn post(&self, path: &str, body: impl AsRef<[u8]>) -> Exchange {
        self.send(Request::post(path).body(body))
    }

    /// The VM dies: no callback runs, its streams, timers and calls are gone.
    pub fn traps(&self) {
        self.vm.die();
    }

    /// Whether this one made the call.
    pub fn made(&self, call: &Call) -> bool {
        (call.vm, call.root) == (self.vm.id, self.root)
    }

    /// The thread is busy: its timers fire late.
    pub fn stalls_for(&self, span: Duration) {
        self.vm.world.lock().unwrap().stall(self.vm.id, u64::try_from(span.as_millis()).unwrap());
    }

    /// Its timer fires between the read and the write of whoever writes shared data next.
    pub fn interrupts(&self) {
        self.vm.world.lock().unwrap().faults.interrupt = Some((self.vm.clone(), self.root));
    }
}

impl Call {
    /// The endpoint that was asked.
    pub fn address(&self) -> String {
        self.text(SCRAPE_DESTINATION)
    }

    /// A header of the call.
    pub fn text(&self, name: &str) -> String {
        String::from_utf8(self.headers.get(name).unwrap_or_else(|| panic!("no {name}"))).unwrap()
    }
}
