//! What servers say of their caches in their answers is believed more than what was assumed.

use std::collections::HashSet;
use std::net::SocketAddr;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use sim::engine;
use sim::server::ServerConfig;
use testbed::Fleet;

use crate::{Stack, ask, words};

/// Rounds of requests within which something has to be learned. Far more than it takes.
const ROUNDS: usize = 200;

/// Where the cached prefix decides, and one worker.
async fn by_prefix(servers: ServerConfig) -> Result<Stack> {
    let profile = json!({ "scorers": [{ "type": "prefix-cache-scorer" }], "picker": { "type": "max-score-picker" } });
    Stack::with_workers(1, Fleet::start(4, servers).await?, |bootstrap| bootstrap.setting("/profile", profile)).await
}

/// Asks about a text of some 900 tokens. The server that answers and how many of these it had in its cache.
async fn ask_about(stack: &Stack, text: usize) -> Result<(SocketAddr, u64)> {
    let body = json!({ "model": "sim", "prompt": words(text, 600), "max_tokens": 4 });
    let answer = ask(&stack.client, "/v1/completions", &body).await?;
    let cached = answer.json()?.pointer("/usage/prompt_tokens_details/cached_tokens").and_then(Value::as_u64);
    Ok((answer.served_by()?, cached.context("no cached tokens are told")?))
}

/// A server has room for three texts and says that it has for sixteen. Forty texts are ten for each.
#[tokio::test(flavor = "multi_thread")]
async fn servers_that_hold_less_than_they_say_are_believed_to() -> Result<()> {
    let engine = engine::Config { num_gpu_blocks: 192, ..engine::Config::default() };
    let stack =
        by_prefix(ServerConfig { engine, claimed_blocks: Some(1024), speedup: 20.0, ..ServerConfig::default() })
            .await?;
    let mut homes = Vec::new();
    for text in 0..40 {
        homes.push(ask_about(&stack, text).await?.0);
    }
    for round in 0..ROUNDS {
        for (text, home) in homes.iter().enumerate() {
            if ask_about(&stack, text).await?.0 != *home {
                assert!(
                    stack.envoy.picker_stat("cache_lost_total").await? > 0,
                    "round {round}: it moved for no reason"
                );
                return Ok(());
            }
        }
    }
    panic!("texts are believed to be where they are not");
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_that_cache_nothing_are_believed_to() -> Result<()> {
    let engine = engine::Config { enable_prefix_caching: false, ..engine::Config::default() };
    let stack = by_prefix(ServerConfig { engine, speedup: 20.0, ..ServerConfig::default() }).await?;
    let mut servers = HashSet::new();
    for count in 1..ROUNDS * 40 {
        servers.insert(ask_about(&stack, 0).await?.0);
        if servers.len() > 1 {
            assert!(count > 16, "it was given up after {count} answers");
            return Ok(());
        }
    }
    panic!("the text is believed to be where it is not");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_whose_cache_was_emptied_keeps_its_texts() -> Result<()> {
    let stack = by_prefix(ServerConfig { speedup: 20.0, ..ServerConfig::default() }).await?;
    let mut homes = Vec::new();
    for text in 0..20 {
        homes.push(ask_about(&stack, text).await?.0);
    }
    stack.fleet.reset();
    for round in 0..4 {
        for (text, home) in homes.iter().enumerate() {
            let (server, cached) = ask_about(&stack, text).await?;
            assert_eq!(server, *home, "text {text}, round {round}");
            assert_eq!(cached > 0, round > 0, "text {text}, round {round}");
        }
    }
    assert_eq!(stack.envoy.picker_stat("cache_lost_total").await?, 20);
    Ok(())
}
