//! A model server around one engine: OpenAI's, Anthropic's and SGLang's API, metrics, faults on request.
//!
//! The engine's virtual time is the wall clock's times `speedup`. A text is four characters a token. An answer begins
//! with the request's `x-request-id`, the length of the body received and its FNV-1a hash, and its headers say the same
//! (`x-request-id`, `x-body-bytes`, `x-body-fnv`) and who served it (`x-served-by`), so that a client behind a proxy
//! can prove that nothing was lost or mixed up.

mod admin;
mod answer;
mod api;
mod app;
mod call;
mod error;
mod faults;
mod listen;
mod live;
mod metrics;
mod models;
mod routes;
mod tokens;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use tokio::sync::watch;
use tokio::task::JoinHandle;

pub use admin::ServerStats;
pub use faults::{CompletionsFault, FaultSet, Faults, MetricsFault};

use crate::engine;
use crate::metrics::Flavor;
use app::App;
use live::LiveEngine;
use models::Models;

/// How to start a server.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Address to listen on; port 0 takes any free one.
    pub listen: SocketAddr,
    /// Whose metrics page it shows.
    pub flavor: Flavor,
    /// Names of the base model; at least one.
    pub models: Vec<String>,
    /// LoRA adapters, by the name a body gives as its model.
    pub adapters: Vec<String>,
    /// Whether other model names are a 404 (vLLM) or mean the base model (llama.cpp).
    pub enforce_models: bool,
    /// The engine. With adapters and `max_loras` 0 it gets one slot, vLLM's default.
    pub engine: engine::Config,
    /// KV blocks that the metrics page tells of, if not those of the engine.
    pub claimed_blocks: Option<u32>,
    /// Virtual seconds per wall second.
    pub speedup: f64,
    /// Tokens in an answer where the request sets no limit; then it ends by itself ("stop").
    pub default_max_tokens: u32,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            flavor: Flavor::default(),
            models: vec!["sim".to_owned()],
            adapters: Vec::new(),
            enforce_models: true,
            engine: engine::Config::default(),
            claimed_blocks: None,
            speedup: 1.0,
            default_max_tokens: 128,
        }
    }
}

/// A server running in the current Tokio runtime. Dropping it kills it.
pub struct Server {
    app: Arc<App>,
    phase: watch::Sender<Phase>,
    listening: JoinHandle<()>,
    engine: JoinHandle<()>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Serving,
    Stopping,
    Killed,
}

impl Server {
    /// Starts listening. Error: the address cannot be bound.
    pub async fn start(config: ServerConfig) -> io::Result<Self> {
        let listener = listen::bind(config.listen)?;
        let addr = listener.local_addr()?;
        let mut engine_config = config.engine;
        if !config.adapters.is_empty() {
            engine_config.max_loras = engine_config.max_loras.max(1);
        }
        let engine = engine::Engine::new(engine_config);
        let engine_config = engine.config().clone();
        let engine = LiveEngine::new(engine, config.adapters.clone(), config.speedup);
        let (phase, watching) = watch::channel(Phase::Serving);
        let app = Arc::new(App {
            addr,
            flavor: config.flavor,
            engine: engine.clone(),
            context_len: engine_config.context_len(),
            block_size: engine_config.block_size,
            config: engine::Config {
                num_gpu_blocks: config.claimed_blocks.unwrap_or(engine_config.num_gpu_blocks),
                ..engine_config
            },
            models: Models { base: config.models, adapters: config.adapters, enforce: config.enforce_models },
            faults: Faults::default(),
            default_max_tokens: config.default_max_tokens,
            started: live::unix_time(),
            phase: watching.clone(),
            ids: AtomicU64::new(0),
        });
        let router = routes::router(Arc::clone(&app));
        let listening = tokio::spawn(listen::serve(listener, router, watching));
        let engine = tokio::spawn(engine.drive());
        Ok(Self { app, phase, listening, engine })
    }

    /// Address it listens on.
    pub fn addr(&self) -> SocketAddr {
        self.app.addr
    }

    /// Its faults.
    pub fn faults(&self) -> Faults {
        self.app.faults.clone()
    }

    /// Its counters.
    pub fn stats(&self) -> ServerStats {
        ServerStats::of(&self.app)
    }

    /// Empties the cache and zeroes the counters.
    pub fn reset(&self) {
        self.app.engine.reset();
    }

    /// Closes the listener and returns when all answers in flight are out. Requests that a fault keeps hanging get 503.
    pub async fn stop(self) {
        self.end(Phase::Stopping).await;
    }

    /// Closes the listener and resets all connections.
    pub async fn kill(self) {
        self.end(Phase::Killed).await;
    }

    async fn end(mut self, phase: Phase) {
        self.phase.send_replace(phase);
        // It ends with the last connection; a panic in a handler ended only its own.
        let _ = (&mut self.listening).await;
        self.engine.abort();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.phase.send_replace(Phase::Killed);
        self.listening.abort();
        self.engine.abort();
    }
}
