//! What one worker of Envoy sends, the others know.

use std::collections::HashMap;

use anyhow::Result;
use futures_util::future::try_join_all;
use serde_json::json;
use sim::server::ServerConfig;
use testbed::Fleet;

use crate::{Stack, ask, words};

const WORKERS: u32 = 4;

#[tokio::test(flavor = "multi_thread")]
async fn forty_requests_of_one_instant_spread_evenly_whichever_worker_takes_them() -> Result<()> {
    let fleet = Fleet::start(4, ServerConfig::default()).await?;
    let stack = Stack::with_workers(WORKERS, fleet, Ok).await?;
    let requests = (0..40).map(|at| {
        let body = json!({ "model": "sim", "prompt": words(at, 100), "max_tokens": 100 });
        let client = stack.envoy.client();
        async move { ask(&client, "/v1/completions", &body).await?.served_by() }
    });
    let mut counts: HashMap<_, usize> = stack.fleet.addresses().iter().map(|address| (*address, 0)).collect();
    for server in try_join_all(requests).await? {
        *counts.entry(server).or_default() += 1;
    }
    let (min, max) = (counts.values().min().unwrap_or(&0), counts.values().max().unwrap_or(&40));
    assert!(max - min <= 3, "{counts:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_with_one_prefix_is_spread_over_few_servers_that_have_it_cached() -> Result<()> {
    const CROWD: usize = 200;
    const SERVERS: usize = 8;
    let fleet = Fleet::start(SERVERS, ServerConfig::default()).await?;
    let stack = Stack::with_workers(WORKERS, fleet, Ok).await?;
    let prefix = words(0, std::env::var("PFX").unwrap().parse()?);
    let requests = (0..CROWD).map(|at| {
        let prompt = format!("{prefix}{}", words(1000 + at, 50));
        let body = json!({ "model": "sim", "prompt": prompt, "max_tokens": 200 });
        let client = stack.envoy.client();
        async move { ask(&client, "/v1/completions", &body).await }
    });
    try_join_all(requests).await?;
    let stats: Vec<_> = stack.fleet.stats().into_iter().flatten().collect();
    let most: Vec<_> = stats.iter().map(|s| s.most_in_flight).collect();
    let (prompt, cached): (u64, u64) =
        stats.iter().fold((0, 0), |(p, c), s| (p + s.prompt_tokens, c + s.cached_tokens));
    eprintln!("{most:?} {}", cached as f64 / prompt as f64);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_stays_whichever_worker_takes_its_next_turn() -> Result<()> {
    let fleet = Fleet::start(4, ServerConfig::default()).await?;
    let stack = Stack::with_workers(WORKERS, fleet, |bootstrap| {
        bootstrap.setting(
            "/profile",
            json!({ "scorers": [{ "type": "prefix-cache-scorer" }], "picker": { "type": "max-score-picker" } }),
        )
    })
    .await?;
    for chat in 0..8 {
        let mut prompt = words(chat, 400);
        let mut home = None;
        for turn in 0..8 {
            prompt.push_str(&words(1000 + turn, 50));
            let body = json!({ "model": "sim", "prompt": prompt, "max_tokens": 4 });
            // A client of its own for each turn is a connection of its own.
            let server = ask(&stack.envoy.client(), "/v1/completions", &body).await?.served_by()?;
            assert_eq!(*home.get_or_insert(server), server, "chat {chat}, turn {turn}");
        }
    }
    Ok(())
}
