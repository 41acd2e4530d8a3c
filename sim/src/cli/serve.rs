//! `sim serve`: a simulated model server on an address.

use std::error::Error;
use std::net::SocketAddr;

use clap::Args;
use clap::builder::PossibleValuesParser;
use sim::Flavor;
use sim::engine::Config;
use sim::server::{Server, ServerConfig};

#[derive(Args)]
pub(crate) struct Serve {
    /// Address to listen on; port 0 takes any free one.
    #[arg(long, default_value = "127.0.0.1:9001")]
    listen: SocketAddr,
    /// Whose metrics page to show: vllm, vllm-old, sglang, trtllm-serve, triton-tensorrt-llm, llama.cpp, tgi, lmdeploy.
    #[arg(long = "engine", default_value = "vllm")]
    flavor: Flavor,
    /// Name of the model; more of them are aliases.
    #[arg(long = "model", default_value = "sim")]
    models: Vec<String>,
    /// LoRA adapter to offer.
    #[arg(long = "lora")]
    adapters: Vec<String>,
    /// Adapters that may run at once.
    #[arg(long)]
    max_loras: Option<usize>,
    /// Answer requests for unknown models too.
    #[arg(long)]
    any_model: bool,
    /// Engine and accelerator to imitate.
    #[arg(long, default_value = "a100-llama3-8b", value_parser = PossibleValuesParser::new(Config::PROFILES))]
    profile: String,
    /// Virtual seconds per second.
    #[arg(long, default_value_t = 1.0)]
    speedup: f64,
    /// Tokens in an answer where the request sets no limit.
    #[arg(long, default_value_t = 128)]
    default_max_tokens: u32,
    /// KV blocks, instead of the profile's.
    #[arg(long)]
    num_gpu_blocks: Option<u32>,
    /// Tokens in a KV block, instead of the profile's.
    #[arg(long)]
    block_size: Option<u32>,
    /// Requests that may run at once, instead of the profile's.
    #[arg(long)]
    max_num_seqs: Option<usize>,
    /// Tokens in a step, instead of the profile's.
    #[arg(long)]
    max_num_batched_tokens: Option<u32>,
}

impl Serve {
    fn config(self) -> ServerConfig {
        let profile = Config::profile(&self.profile).unwrap_or_default();
        let engine = Config {
            num_gpu_blocks: self.num_gpu_blocks.unwrap_or(profile.num_gpu_blocks),
            block_size: self.block_size.unwrap_or(profile.block_size),
            max_num_seqs: self.max_num_seqs.unwrap_or(profile.max_num_seqs),
            max_num_batched_tokens: self.max_num_batched_tokens.unwrap_or(profile.max_num_batched_tokens),
            max_loras: self.max_loras.unwrap_or(profile.max_loras),
            ..profile
        };
        ServerConfig {
            listen: self.listen,
            flavor: self.flavor,
            models: self.models,
            adapters: self.adapters,
            enforce_models: !self.any_model && self.flavor != Flavor::LlamaCpp,
            engine,
            claimed_blocks: None,
            speedup: self.speedup,
            default_max_tokens: self.default_max_tokens,
        }
    }

    #[tokio::main]
    pub(crate) async fn run(self) -> Result<(), Box<dyn Error>> {
        let config = self.config();
        let listen = config.listen;
        let server = Server::start(config).await.map_err(|error| format!("cannot listen on {listen}: {error}"))?;
        println!("listening on http://{}", server.addr());
        let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
        tokio::select! {
            interrupted = tokio::signal::ctrl_c() => interrupted?,
            _ = terminate.recv() => {}
        }
        server.stop().await;
        Ok(())
    }
}
