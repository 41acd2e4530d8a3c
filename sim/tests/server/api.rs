//! Every path as a client sees it, whole and streaming.

use crate::client::{FAST, chat, events, fast, get, json_of, post, start, url};
use reqwest::Client;
use serde_json::{Value, json};
use sim::engine::Config;
use sim::server::ServerConfig;

fn streaming(mut body: Value, include_usage: bool) -> Value {
    body["stream"] = json!(true);
    if include_usage {
        body["stream_options"] = json!({"include_usage": true});
    }
    body
}

#[tokio::test]
async fn answers_name_their_request_and_their_server() {
    let server = fast().await;
    let body = chat("hello", 20);
    let response = post(&server, "/v1/chat/completions", &body).await;
    let headers = response.headers().clone();
    assert_eq!(headers["x-request-id"], "req-1");
    assert_eq!(headers["x-served-by"], server.addr().to_string());
    assert_eq!(headers["x-body-bytes"], body.to_string().len().to_string());
    let hash = headers["x-body-fnv"].to_str().unwrap().to_owned();
    let content = json_of(response).await["choices"][0]["message"]["content"].as_str().unwrap().to_owned();
    assert!(content.starts_with(&format!("req-1 {} {hash} ", body.to_string().len())), "{content}");
    server.stop().await;
}

#[tokio::test]
async fn chat_whole_and_streaming() {
    let server = fast().await;
    let whole = json_of(post(&server, "/v1/chat/completions", &chat("hello", 3)).await).await;
    assert_eq!(whole["object"], "chat.completion");
    assert_eq!(whole["choices"][0]["finish_reason"], "length");
    assert_eq!(whole["usage"]["completion_tokens"], 3);

    let body = streaming(chat("hello", 3), false);
    let chunks = events(post(&server, "/v1/chat/completions", &body).await).await;
    assert_eq!(chunks.len(), 1 + 3 + 1);
    assert_eq!(chunks[0]["choices"][0]["delta"], json!({"role": "assistant", "content": ""}));
    assert_eq!(chunks[3]["choices"][0]["finish_reason"], "length");
    assert_eq!(chunks[4], "[DONE]");
    assert!(chunks.iter().all(|chunk| chunk.get("usage").is_none()));

    let body = streaming(chat("hello", 3), true);
    let chunks = events(post(&server, "/v1/chat/completions", &body).await).await;
    let last = &chunks[chunks.len() - 2];
    assert_eq!(last["choices"], json!([]));
    assert_eq!(last["usage"]["completion_tokens"], 3);
    assert_eq!(last["usage"]["prompt_tokens_details"]["cached_tokens"], 0);
    server.stop().await;
}

#[tokio::test]
async fn chat_without_a_limit_ends_by_itself() {
    let server = start(ServerConfig { default_max_tokens: 7, speedup: FAST, ..ServerConfig::default() }).await;
    let body = json!({"messages": [{"role": "user", "content": "hi"}]});
    let whole = json_of(post(&server, "/v1/chat/completions", &body).await).await;
    assert_eq!(whole["choices"][0]["finish_reason"], "stop");
    assert_eq!(whole["usage"]["completion_tokens"], 7);
    assert_eq!(whole["model"], "sim");
    server.stop().await;
}

#[tokio::test]
async fn completions_take_text_ids_and_lists() {
    let server = fast().await;
    for (prompt, prompt_tokens, choices) in [
        (json!("twelve chars"), 3, 1),
        (json!([10, 11, 12, 13, 14]), 5, 1),
        (json!(["hello", "world"]), 4, 2),
        (json!([[1, 2], [3]]), 3, 2),
    ] {
        let body = json!({"model": "sim", "prompt": prompt, "max_tokens": 4});
        let whole = json_of(post(&server, "/v1/completions", &body).await).await;
        assert_eq!(whole["usage"]["prompt_tokens"], prompt_tokens, "{prompt}");
        assert_eq!(whole["choices"].as_array().unwrap().len(), choices, "{prompt}");
        assert_eq!(whole["usage"]["completion_tokens"], 4 * choices, "{prompt}");

        let chunks = events(post(&server, "/v1/completions", &streaming(body, true)).await).await;
        assert_eq!(chunks.len(), 4 * choices + 2, "{prompt}");
        let last = chunks.iter().filter(|chunk| chunk["choices"][0]["finish_reason"] == "length");
        assert_eq!(last.count(), choices, "{prompt}");
    }
    server.stop().await;
}

#[tokio::test]
async fn responses_whole_and_streaming() {
    let server = fast().await;
    let body = json!({"model": "sim", "input": "hello", "max_output_tokens": 3});
    let whole = json_of(post(&server, "/v1/responses", &body).await).await;
    assert_eq!(whole["object"], "response");
    assert_eq!(whole["status"], "incomplete");
    assert_eq!(whole["usage"]["output_tokens"], 3);
    let text = whole["output"][0]["content"][0]["text"].clone();

    let chunks = events(post(&server, "/v1/responses", &streaming(body, false)).await).await;
    let kinds: Vec<_> = chunks.iter().map(|chunk| chunk["type"].as_str().unwrap()).collect();
    let ends =
        ["response.created", "response.in_progress", "response.output_item.added", "response.content_part.added"];
    assert_eq!(kinds[..4], ends);
    assert_eq!(kinds[4..7], ["response.output_text.delta"; 3]);
    assert_eq!(kinds[kinds.len() - 1], "response.completed");
    let numbers: Vec<_> = chunks.iter().map(|chunk| chunk["sequence_number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (0..chunks.len() as u64).collect::<Vec<_>>());
    let streamed: String = chunks.iter().filter_map(|chunk| chunk["delta"].as_str()).collect();
    assert_eq!(streamed.len(), text.as_str().unwrap().len());
    server.stop().await;
}

#[tokio::test]
async fn messages_whole_and_streaming() {
    let server = fast().await;
    let mut body = chat("hello", 3);
    body["system"] = json!([{"type": "text", "text": "be kind"}]);
    let whole = json_of(post(&server, "/v1/messages", &body).await).await;
    assert_eq!(whole["type"], "message");
    assert_eq!(whole["stop_reason"], "max_tokens");
    assert_eq!(whole["usage"]["output_tokens"], 3);

    let chunks = events(post(&server, "/v1/messages", &streaming(body, false)).await).await;
    let kinds: Vec<_> = chunks.iter().map(|chunk| chunk["type"].as_str().unwrap()).collect();
    assert_eq!(kinds[..2], ["message_start", "content_block_start"]);
    assert_eq!(kinds[2..5], ["content_block_delta"; 3]);
    assert_eq!(kinds[5..], ["content_block_stop", "message_delta", "message_stop"]);
    server.stop().await;
}

#[tokio::test]
async fn generate_whole_and_streaming() {
    let server = fast().await;
    let body = json!({"text": "hello", "sampling_params": {"max_new_tokens": 3}});
    let whole = json_of(post(&server, "/generate", &body).await).await;
    assert_eq!(whole["meta_info"]["completion_tokens"], 3);

    let chunks = events(post(&server, "/generate", &streaming(body, false)).await).await;
    assert_eq!(chunks.len(), 4);
    // Each has all of the text so far.
    let lengths: Vec<_> = chunks[..3].iter().map(|chunk| chunk["text"].as_str().unwrap().len()).collect();
    assert_eq!(lengths, [4, 8, 12]);
    assert_eq!(chunks[2]["meta_info"]["finish_reason"]["type"], "length");
    server.stop().await;
}

#[tokio::test]
async fn embeddings() {
    let server = fast().await;
    let body = json!({"model": "sim", "input": ["one text", "another one"]});
    let whole = json_of(post(&server, "/v1/embeddings", &body).await).await;
    assert_eq!(whole["data"].as_array().unwrap().len(), 2);
    assert_eq!(whole["data"][1]["embedding"].as_array().unwrap().len(), 8);
    assert_eq!(whole["usage"]["prompt_tokens"], 2 + 3);
    server.stop().await;
}

#[tokio::test]
async fn second_turn_finds_the_first_one_cached_answer_included() {
    let server = fast().await;
    let question = "What do you know about caches? ".repeat(20);
    let first = json_of(post(&server, "/v1/chat/completions", &chat(&question, 64)).await).await;
    let prompt_tokens = first["usage"]["prompt_tokens"].as_u64().unwrap();
    let answer = &first["choices"][0]["message"]["content"];
    let body = json!({"model": "sim", "max_tokens": 4, "messages": [
        {"role": "user", "content": question},
        {"role": "assistant", "content": answer},
        {"role": "user", "content": "And now?"},
    ]});
    let second = json_of(post(&server, "/v1/chat/completions", &body).await).await;
    let cached = second["usage"]["prompt_tokens_details"]["cached_tokens"].as_u64().unwrap();
    assert!(cached > prompt_tokens + 64 - 32, "{cached} of {prompt_tokens} + 64 tokens");
    server.reset();
    let again = json_of(post(&server, "/v1/chat/completions", &body).await).await;
    assert_eq!(again["usage"]["prompt_tokens_details"]["cached_tokens"], 0);
    server.stop().await;
}

#[tokio::test]
async fn adapters_are_models_with_a_parent_and_a_cache_of_their_own() {
    let adapters = vec!["sql".to_owned()];
    let server = start(ServerConfig { adapters, speedup: FAST, ..ServerConfig::default() }).await;
    let models = json_of(get(&server, "/v1/models").await).await;
    assert_eq!((&models["data"][1]["id"], &models["data"][1]["parent"]), (&json!("sql"), &json!("sim")));
    let mut body = chat(&"a long prompt ".repeat(50), 2);
    for (model, cached) in [("sim", false), ("sql", false), ("sql", true)] {
        body["model"] = json!(model);
        let whole = json_of(post(&server, "/v1/chat/completions", &body).await).await;
        let tokens = whole["usage"]["prompt_tokens_details"]["cached_tokens"].as_u64().unwrap();
        assert_eq!(tokens > 0, cached, "{model}");
    }
    let page = get(&server, "/metrics").await.text().await.unwrap();
    assert!(page.contains("vllm:lora_requests_info{max_lora=\"1\",running_lora_adapters=\"sql\""));
    server.stop().await;
}

#[tokio::test]
async fn errors_are_worded_as_vllm_words_them() {
    let engine = Config { max_model_len: 100, ..Config::default() };
    let server = start(ServerConfig { engine, speedup: FAST, ..ServerConfig::default() }).await;
    let error = async |path: &str, body: &str| {
        let response = Client::new().post(url(&server, path)).body(body.to_owned()).send().await.unwrap();
        (response.status().as_u16(), json_of(response).await["error"].clone())
    };
    let (status, unknown) = error("/v1/chat/completions", r#"{"model": "nope", "messages": []}"#).await;
    assert_eq!((status, &unknown["type"]), (404, &json!("NotFoundError")));
    assert_eq!(unknown["message"], "The model `nope` does not exist. Valid aliases: sim.");
    let long = chat(&"x".repeat(400), 1).to_string();
    let deep = "[".repeat(200);
    for (path, body) in [
        ("/v1/chat/completions", r#"{"model": "x", "#),
        ("/v1/chat/completions", ""),
        ("/v1/chat/completions", r#"{"model": "sim"}"#),
        ("/v1/completions", r#"{"prompt": {"a": 1}}"#),
        ("/v1/completions", r#"{"prompt": [1, "two"]}"#),
        ("/v1/completions", r#"{"prompt": ""}"#),
        ("/v1/completions", r#"{"prompt": "a", "max_tokens": 10000000}"#),
        ("/v1/responses", r#"{"input": 5}"#),
        ("/v1/embeddings", "{}"),
        ("/v1/messages", "[]"),
        ("/generate", "null"),
        ("/v1/chat/completions", &deep),
        ("/v1/chat/completions", &long),
    ] {
        let (status, error) = error(path, body).await;
        assert_eq!((status, &error["code"]), (400, &json!(400)), "{path} {body}: {error}");
    }
    let nowhere = get(&server, "/v1/nope").await;
    assert_eq!(nowhere.status(), 404);
    assert_eq!(json_of(nowhere).await, json!({"detail": "Not Found"}));
    let method = get(&server, "/v1/chat/completions").await;
    assert_eq!(method.status(), 405);
    assert_eq!(json_of(method).await, json!({"detail": "Method Not Allowed"}));
    server.stop().await;
}

#[tokio::test]
async fn large_bodies_arrive_whole() {
    let server = fast().await;
    let body = chat(&"word ".repeat(60_000), 2).to_string();
    let response = Client::new().post(url(&server, "/v1/chat/completions")).body(body.clone()).send().await.unwrap();
    assert_eq!(response.headers()["x-body-bytes"], body.len().to_string());
    let whole = json_of(response).await;
    assert_eq!(whole["usage"]["prompt_tokens"], 75_002);
    server.stop().await;
}

#[tokio::test]
async fn health_version_and_statistics() {
    let server = fast().await;
    assert_eq!(get(&server, "/health").await.text().await.unwrap(), "");
    assert_eq!(get(&server, "/version").await.status(), 200);
    post(&server, "/v1/chat/completions", &chat("hello", 3)).await;
    let stats = json_of(get(&server, "/sim/stats").await).await;
    assert_eq!((&stats["requests"], &stats["finished"], &stats["in_flight"]), (&json!(1), &json!(1), &json!(0)));
    assert_eq!(stats["most_in_flight"], 1);
    post(&server, "/sim/reset", &json!({})).await;
    assert_eq!(json_of(get(&server, "/sim/stats").await).await["requests"], 0);
    server.stop().await;
}
