//! Every kind of request gets to a server and its answer back, whole or as a stream.

use std::collections::HashSet;

use anyhow::Result;
use reqwest::Method;
use serde_json::{Value, json};
use testbed::{Answer, Client};

use crate::{Stack, ask};

/// Each inference path with a body for it.
fn prompts(tokens: u32) -> [(&'static str, Value); 6] {
    let message = json!([{ "role": "user", "content": "How many moons has Mars?" }]);
    [
        ("/v1/chat/completions", json!({ "model": "sim", "messages": message, "max_tokens": tokens })),
        ("/v1/completions", json!({ "model": "sim", "prompt": "Mars has", "max_tokens": tokens })),
        ("/v1/responses", json!({ "model": "sim", "input": "How many moons has Mars?", "max_output_tokens": tokens })),
        ("/v1/messages", json!({ "model": "sim", "messages": message, "max_tokens": tokens })),
        ("/generate", json!({ "text": "Mars has", "sampling_params": { "max_new_tokens": tokens } })),
        ("/v1/embeddings", json!({ "model": "sim", "input": ["Mars", "Venus"] })),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn every_inference_path_is_answered_whole() -> Result<()> {
    let stack = Stack::start().await?;
    for (path, body) in prompts(12) {
        let answer = ask(&stack.client, path, &body).await?;
        assert!(stack.fleet.addresses().contains(&answer.served_by()?));
        assert!(answer.json()?.is_object(), "{path}: {answer:?}");
    }
    assert_eq!(stack.envoy.picker_stat("picks_total").await?, 6);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_generating_path_streams_token_by_token() -> Result<()> {
    let stack = Stack::with(sim::server::ServerConfig::default(), Ok).await?;
    for (path, mut body) in prompts(50).into_iter().filter(|(path, _)| *path != "/v1/embeddings") {
        body["stream"] = json!(true);
        let answer = ask(&stack.client, path, &body).await?;
        assert!(answer.header("content-type").unwrap().starts_with("text/event-stream"), "{path}: {answer:?}");
        assert!(answer.events()?.len() >= 50, "{path}: {answer:?}");
        // Forty-nine steps of ten milliseconds follow the first token.
        assert!(answer.first * 2 < answer.total, "{path} was held back: {:?} of {:?}", answer.first, answer.total);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_without_a_usable_prompt_get_the_answer_a_server_would_give() -> Result<()> {
    let stack = Stack::start().await?;
    let direct = Client::new(stack.fleet.addresses()[0]);
    let get =
        [(Method::GET, "/v1/models"), (Method::GET, "/health"), (Method::HEAD, "/"), (Method::OPTIONS, "/v1/models")];
    let without_body = get.into_iter().map(|(method, path)| (method, path, "", ""));
    let chat = "/v1/chat/completions";
    let json = "application/json";
    let deep = "[".repeat(200) + &"]".repeat(200);
    let with_body = [
        (chat, json, ""),
        (chat, json, "{"),
        (chat, json, "[]"),
        (chat, json, "null"),
        (chat, json, r#"{"model":5}"#),
        (chat, json, r#"{"messages":{"role":[]},"model":{},"stream":"yes","max_tokens":"many","tools":1}"#),
        (chat, json, r#"{"messages":[1,"two",null,[3],{"role":4,"content":{"a":[]}}]}"#),
        (chat, json, &deep),
        (chat, "text/plain", "Hello"),
        ("/v1/audio/transcriptions", "multipart/form-data; boundary=x", "--x--"),
        ("/tokenize", json, r#"{"prompt":"Hello"}"#),
    ];
    let with_body = with_body.into_iter().map(|(path, kind, body)| (Method::POST, path, kind, body));
    for (method, path, kind, body) in without_body.chain(with_body) {
        let request = |client: &Client| {
            let request = client.request(method.clone(), path).body(body.to_owned());
            if kind.is_empty() { request } else { request.header("content-type", kind) }
        };
        let (through, direct) = (Answer::to(request(&stack.client)).await?, Answer::to(request(&direct)).await?);
        assert!(through.served_by().is_ok(), "{method} {path} {body}: {through:?}");
        assert_eq!(through.status, direct.status, "{method} {path} {body}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_without_a_prompt_are_spread() -> Result<()> {
    let stack = Stack::start().await?;
    let mut servers = HashSet::new();
    for _ in 0..40 {
        servers.insert(stack.client.get("/v1/models").await?.served_by()?);
    }
    assert_eq!(servers.len(), 4);
    Ok(())
}
