//! Requests go where what they need already is.

use anyhow::Result;
use serde_json::{Value, json};
use sim::server::ServerConfig;
use testbed::{Client, Fleet};

use crate::{Held, Stack, ask, words};

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_stays_with_the_server_that_has_its_prefix() -> Result<()> {
    // Each worker still learns by itself which server has which prefix.
    let servers = ServerConfig { speedup: 20.0, ..ServerConfig::default() };
    let stack = Stack::with_workers(1, Fleet::start(4, servers).await?, Ok).await?;
    let mut chats: Vec<_> = (0..8).map(|chat| vec![message("system", &words(chat, 400))]).collect();
    let mut homes = vec![None; chats.len()];
    for turn in 0..4 {
        for (chat, (messages, home)) in chats.iter_mut().zip(&mut homes).enumerate() {
            messages.push(message("user", &words(1000 + chat * 10 + turn, 20)));
            let body = json!({ "model": "sim", "messages": messages, "max_tokens": 40 });
            let answer = ask(&stack.client, "/v1/chat/completions", &body).await?;
            let server = answer.served_by()?;
            assert_eq!(*home.get_or_insert(server), server, "chat {chat} moved in turn {turn}");
            let answer = answer.json()?;
            let tokens = |pointer: &str| answer.pointer(pointer).and_then(Value::as_u64).unwrap();
            let cached = tokens("/usage/prompt_tokens_details/cached_tokens");
            if turn > 0 {
                assert!(cached * 10 >= tokens("/usage/prompt_tokens") * 8, "chat {chat}, turn {turn}: {cached} cached");
            }
            messages.push(answer["choices"][0]["message"].clone());
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_adapter_is_served_where_it_is_loaded() -> Result<()> {
    let only = json!({ "scorers": [{ "type": "lora-affinity-scorer" }], "picker": { "type": "max-score-picker" } });
    for profile in [only, json!("expected-cost")] {
        adapters_stay(profile).await?;
    }
    Ok(())
}

async fn adapters_stay(profile: Value) -> Result<()> {
    let adapters: Vec<String> = ["red", "green", "blue", "first"].map(String::from).into();
    let mut servers = ServerConfig { adapters: adapters.clone(), ..ServerConfig::default() };
    servers.engine.max_loras = 2;
    let stack = Stack::with(servers, |bootstrap| bootstrap.setting("/profile", profile)).await?;
    let body =
        |model: &str, prompt: &str, tokens: u32| json!({ "model": model, "prompt": prompt, "max_tokens": tokens });

    // A server that never had an adapter says nothing of them.
    for server in stack.fleet.addresses() {
        ask(&Client::new(*server), "/v1/completions", &body("first", "Good morning", 5)).await?;
    }
    for adapter in ["red", "green", "blue"] {
        // An engine tells of an adapter only while a request uses it.
        let held = Held::open(&stack.client, adapter).await?;
        let scraped = stack.envoy.picker_stat("scrapes_read_total").await?;
        stack.envoy.picker_stat_reaches("scrapes_read_total", scraped + 12).await?;
        for question in 0..6 {
            let answer = ask(&stack.client, "/v1/completions", &body(adapter, &words(question, 50), 1)).await?;
            assert_eq!(answer.served_by()?, held.server, "{adapter}");
        }
    }
    Ok(())
}

fn message(role: &str, content: &str) -> Value {
    json!({ "role": role, "content": content })
}
