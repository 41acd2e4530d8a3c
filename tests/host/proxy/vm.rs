//! One VM: an operating system thread, since the SDK keeps its contexts per thread, and the host's view of it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::Write;
use std::panic;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, Once};
use std::thread::{self, JoinHandle};

use super::exports;
use super::server::Answer;
use super::stream::Stream;
use super::world::{VmId, World};

type Job = Box<dyn FnOnce() + Send>;

/// A handle on a VM.
pub struct Vm {
    pub id: VmId,
    pub world: Arc<Mutex<World>>,
    thread: Mutex<Option<(Sender<Job>, JoinHandle<()>)>>,
}

/// What the host keeps for the VM of this thread.
pub struct State {
    pub vm: VmId,
    world: Arc<Mutex<World>>,
    /// The context of the callback that runs.
    pub effective: u32,
    pub roots: BTreeMap<u32, Root>,
    pub streams: BTreeMap<u32, Stream>,
    /// The answer whose callback runs.
    pub answer: Option<Answer>,
    contexts: u32,
}

/// A root context's side of the proxy's configuration.
pub struct Root {
    pub id: &'static str,
    pub configuration: Vec<u8>,
}

thread_local! {
    static STATE: RefCell<Option<State>> = const { RefCell::new(None) };
}

/// The host's state for the VM that runs on this thread.
pub fn state<T>(look: impl FnOnce(&mut State) -> T) -> T {
    STATE.with_borrow_mut(|state| look(state.as_mut().expect("a host call from outside a VM")))
}

impl State {
    pub fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap()
    }

    /// The stream whose callback runs.
    pub fn stream(&mut self) -> Option<&mut Stream> {
        self.streams.get_mut(&self.effective)
    }

    pub fn new_context(&mut self) -> u32 {
        self.contexts += 1;
        self.contexts
    }
}

impl Vm {
    /// Loads the module into a new VM.
    pub fn start(id: VmId, world: Arc<Mutex<World>>) -> Self {
        let (jobs, queue) = channel::<Job>();
        let ours = world.clone();
        // A panic in the module aborts the process, so the name is all that says which test it was.
        let test = thread::current().name().unwrap_or("test").to_owned();
        let thread = thread::Builder::new().name(test).spawn(move || {
            let (roots, streams) = (BTreeMap::new(), BTreeMap::new());
            let state = State { vm: id, world: ours, effective: 0, roots, streams, answer: None, contexts: 0 };
            STATE.set(Some(state));
            load();
            queue.into_iter().for_each(|job| job());
        });
        Self { id, world, thread: Mutex::new(Some((jobs, thread.unwrap()))) }
    }

    pub fn is_alive(&self) -> bool {
        self.thread.lock().unwrap().is_some()
    }

    /// Runs `job` on the VM's thread and waits for it.
    pub fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> T {
        let (result, done) = channel();
        let thread = self.thread.lock().unwrap();
        let (jobs, _) = thread.as_ref().expect("this VM is dead");
        jobs.send(Box::new(move || result.send(job()).unwrap())).unwrap();
        done.recv().expect("the mock host failed, see above")
    }

    /// Ends the VM as a trap does: no callback runs, its contexts are gone.
    pub fn die(&self) {
        if let Some((jobs, thread)) = self.thread.lock().unwrap().take() {
            self.world.lock().unwrap().bury(self.id);
            drop(jobs);
            let _ = thread.join();
        }
    }
}

impl Drop for Vm {
    fn drop(&mut self) {
        // A failed test may have left the world's lock poisoned.
        if !thread::panicking() {
            self.die();
        }
    }
}

/// The SDK installs logger and panic hook with the first VM of the process. Its hook logs through the host; a test wants
/// its assertions where they always are, and a panic of the module past the capture of output, which an abort loses.
fn load() {
    static FIRST: Once = Once::new();
    FIRST.call_once(|| {
        let print = panic::take_hook();
        exports::initialize();
        panic::set_hook(Box::new(move |panic| {
            if STATE.with(|state| state.try_borrow().is_ok_and(|state| state.is_none())) {
                print(panic);
            } else {
                let thread = thread::current();
                let _ = writeln!(std::io::stderr(), "{}: in a VM: {panic}", thread.name().unwrap_or_default());
            }
        }));
    });
    exports::initialize();
}
