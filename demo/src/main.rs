//! The picker against Envoy's round robin: the same Envoy, the same simulated servers, the same chats.

mod live;
mod load;
mod outcome;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use clap::Parser;
use sim::engine;
use sim::server::ServerConfig;
use testbed::{Bootstrap, Envoy, Fleet};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::{Instant, interval};

use live::Live;
use load::{Load, Shape};
use outcome::{Comparison, Outcome};

/// Four simulated model servers behind Envoy answer the same chats twice: by round robin, then by the picker.
#[derive(Parser)]
struct Arguments {
    /// End after the comparison, with failure unless the picker has won.
    #[arg(long)]
    once: bool,
    /// Draws other chats.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

const SERVERS: usize = 4;

/// Virtual seconds of a simulated server per second.
const SPEEDUP: f64 = 2.0;

const SHAPE: Shape = Shape {
    prompts: 24,
    prompt_tokens: 4800,
    chats: 70,
    turns: 5,
    question_tokens: 80,
    answer_tokens: 60,
    chats_per_second: 5.0,
    thought: Duration::from_millis(500),
};

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    // Ending in order takes Envoy down too.
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        ended = demonstrate(&arguments) => ended,
        _ = tokio::signal::ctrl_c() => Ok(ExitCode::FAILURE),
        _ = terminate.recv() => Ok(ExitCode::FAILURE),
    }
}

async fn demonstrate(arguments: &Arguments) -> Result<ExitCode> {
    let engine = engine::Config::rtx4090_llama3_8b();
    let load = Arc::new(Load::new(&SHAPE, arguments.seed));
    introduce(&engine, &load);
    let fleet = Fleet::start(SERVERS, ServerConfig { engine, speedup: SPEEDUP, ..ServerConfig::default() }).await?;

    let bootstrap = Bootstrap::new(fleet.addresses())?;
    let round_robin = run("round robin", &bootstrap.clone().without_picker()?, &fleet, &load).await?;
    let picker = run("picker", &bootstrap, &fleet, &load).await?;
    let comparison = Comparison { round_robin, picker };
    println!("\n{comparison}");

    if !arguments.once {
        stay(&bootstrap).await?;
    }
    Ok(if comparison.won() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn introduce(engine: &engine::Config, load: &Load) {
    let cache = engine.num_gpu_blocks * engine.block_size;
    println!(
        "{SERVERS} simulated servers, each Llama-3.1-8B on an RTX 4090 as measured with vLLM 0.19, {SPEEDUP} times as fast.\n\
         {} chats of {} turns, {} requests; each chat has one of {} system prompts of {} tokens.\n\
         A server's cache holds {cache} tokens: a quarter of the system prompts and some chats, not all.\n",
        SHAPE.chats,
        SHAPE.turns,
        load.requests(),
        SHAPE.prompts,
        SHAPE.prompt_tokens,
    );
}

/// One run from cold servers.
async fn run(title: &'static str, bootstrap: &Bootstrap, fleet: &Fleet, load: &Arc<Load>) -> Result<Outcome> {
    fleet.reset();
    let envoy = Envoy::start(bootstrap).await?;
    let begin = Instant::now();
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let mut running = tokio::spawn(Arc::clone(load).run(envoy.client(), sender));
    let mut live = Live::new(title, load.requests());
    let mut redraw = interval(live.period());
    let mut samples = Vec::new();
    let ended = loop {
        tokio::select! {
            Some(sample) = receiver.recv() => samples.push(sample),
            _ = redraw.tick() => live.show(fleet, samples.len())?,
            ended = &mut running => break ended,
        }
    };
    let took = begin.elapsed();
    ended??;
    while let Ok(sample) = receiver.try_recv() {
        samples.push(sample);
    }
    live.show(fleet, samples.len())?;
    Ok(Outcome::new(&samples, fleet.addresses(), took))
}

/// Keeps everything up to be looked at.
async fn stay(bootstrap: &Bootstrap) -> Result<()> {
    let envoy = Envoy::start(bootstrap).await?;
    println!("\nStill up, to be tried; Ctrl-C ends it:");
    let body = r#"{"messages":[{"role":"user","content":"Hello"}]}"#;
    println!("  curl -i http://{}/v1/chat/completions -d '{body}'", envoy.address());
    println!("  curl http://{}/stats?filter=wasmcustom", envoy.admin_address());
    std::future::pending().await
}
