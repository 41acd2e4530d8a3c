//! What one worker of Envoy sends, the others know.

use std::collections::HashMap;

use anyhow::Result;
use futures_util::future::try_join_all;
use reqwest::Method;
use serde_json::json;
use sim::server::{ServerConfig, ServerStats};
use testbed::{Answer, Fleet};

use crate::{Stack, ask, words};

const WORKERS: u32 = 4;

/// As many requests as workers: each worker alone would choose at random, which leaves the busiest server four requests
/// ahead of the idlest in the mean, and once in 65 rounds only none or one.
#[tokio::test(flavor = "multi_thread")]
async fn requests_of_one_instant_spread_evenly_though_hardly_any_worker_takes_two_of_them() -> Result<()> {
    let fleet = Fleet::start(4, ServerConfig::default()).await?;
    let stack = Stack::with_workers(16, fleet, Ok).await?;
    let mut ahead = Vec::new();
    for round in 0..4 {
        let requests = (0..16).map(|at| {
            let body = json!({ "model": "sim", "prompt": words(100 * round + at, 100), "max_tokens": 100 });
            let client = stack.envoy.client();
            async move { ask(&client, "/v1/completions", &body).await?.served_by() }
        });
        let mut counts: HashMap<_, usize> = stack.fleet.addresses().iter().map(|address| (*address, 0)).collect();
        for server in try_join_all(requests).await? {
            *counts.entry(server).or_default() += 1;
        }
        let (least, most) = (counts.values().min().unwrap_or(&0), counts.values().max().unwrap_or(&16));
        ahead.push(most - least);
    }
    // Two workers that decide at the very same moment do not see each other.
    assert!(ahead.iter().sum::<usize>() <= ahead.len(), "{ahead:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_with_one_prefix_is_spread_over_a_few_servers_that_have_it_cached() -> Result<()> {
    let fleet = Fleet::start(16, ServerConfig::default()).await?;
    let stack = Stack::with_workers(WORKERS, fleet, Ok).await?;
    let prefix = words(0, 8000);
    let request = |at: usize| {
        let prompt = format!("{prefix}{}", words(1000 + at, 50));
        let body = json!({ "model": "sim", "prompt": prompt, "max_tokens": 200 }).to_string();
        stack.envoy.client().request(Method::POST, "/v1/completions").body(body)
    };
    // All are ready before the first one goes.
    let requests: Vec<_> = (0..200).map(request).collect();
    for answer in try_join_all(requests.into_iter().map(Answer::to)).await? {
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    let stats: Vec<_> = stack.fleet.stats().into_iter().flatten().collect();
    let most: Vec<_> = stats.iter().map(|stats| stats.most_in_flight).filter(|most| *most > 0).collect();
    let sum = |tokens: fn(&ServerStats) -> u64| stats.iter().map(tokens).sum::<u64>() as f64;
    let hits = sum(|stats| stats.cached_tokens) / sum(|stats| stats.prompt_tokens);
    println!("at most {most:?} in flight, {hits:.3} of the prompts cached");
    assert!(hits >= 0.9, "{hits}");
    let mean = most.iter().sum::<usize>() / most.len();
    assert!((2..16).contains(&most.len()) && most.iter().all(|most| *most <= 2 * mean), "{most:?}");
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
