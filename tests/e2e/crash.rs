//! A worker's VM dies.

use std::time::Instant;

use anyhow::Result;
use futures_util::future::{join_all, try_join_all};
use sim::server::ServerConfig;
use testbed::envoy::crashing_module;
use testbed::{Envoy, Fleet};

use crate::{Held, Stack, ask, chat};

const WORKERS: u32 = 4;

/// Requests the servers have, as they count them.
fn at_the_servers(stack: &Stack) -> u64 {
    stack.fleet.stats().iter().flatten().map(|stats| stats.in_flight as u64).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ledger_comes_right_after_a_worker_died() -> Result<()> {
    let module = crashing_module()?;
    let fleet = Fleet::start(4, ServerConfig::default()).await?;
    let stack = Stack::with_workers(WORKERS, fleet, |bootstrap| bootstrap.module(&module)).await?;
    // Connections of their own, so that every worker gets some.
    let clients: Vec<_> = (0..24).map(|_| stack.envoy.client()).collect();
    let held = try_join_all(clients.iter().map(|client| Held::open(client, "sim"))).await?;
    stack.envoy.picker_stat_reaches("requests_in_flight", 24).await?;

    stack.client.request(reqwest::Method::GET, "/v1/models").header("x-crash", "1").send().await?;
    // The streams of the dead worker are gone, those of the others go on.
    let settled = async |envoy: &Envoy| {
        let (told, true_count) = (envoy.picker_stat("requests_in_flight").await.ok()?, at_the_servers(&stack));
        (told == true_count && told < 24).then_some(told)
    };
    let begin = Instant::now();
    let left = stack.envoy.until("a ledger that is right", settled).await?;
    println!("{left} of 24 streams are left; the ledger knew after {:?}", begin.elapsed());
    assert!(left > 0, "one worker died, not all");

    // The worker is back under another name, and what the others have is still theirs.
    let answers = join_all((0..40).map(|_| {
        let client = stack.envoy.client();
        async move { ask(&client, "/v1/chat/completions", &chat("Hello")).await }
    }));
    assert!(answers.await.iter().all(Result::is_ok));
    drop(held);
    let empty = async |envoy: &Envoy| (envoy.picker_stat("requests_in_flight").await.ok()? == 0).then_some(());
    stack.envoy.until("an empty ledger", empty).await?;
    Ok(())
}
