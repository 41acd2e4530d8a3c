//! Requests that go to another model than their clients name.

use std::convert::Infallible;

use anyhow::Result;
use futures_util::stream;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Bytes, Frame};
use hyper::client::conn::http2;
use hyper::header::{HeaderMap, HeaderValue};
use hyper_util::rt::{TokioExecutor, TokioIo};
use reqwest::Method;
use serde_json::{Value, json};
use sim::server::ServerConfig;
use testbed::{Answer, Client};
use tokio::net::TcpStream;

use crate::{Stack, fnv1a};

const CHAT: &str = "/v1/chat/completions";

/// Names longer and shorter than `sim`, and one that leads nowhere.
const CLIENTS: [&str; 2] = ["a-name-that-is-much-longer", "s"];

/// Servers that know the model `sim` only.
async fn stack() -> Result<Stack> {
    let rule = |model: &str, target: &str| json!({ "model": model, "targets": [{ "model": target }] });
    let rules = json!([rule(CLIENTS[0], "sim"), rule(CLIENTS[1], "sim"), rule("lost", "nobody")]);
    let config = ServerConfig { speedup: 20.0, ..ServerConfig::default() };
    Stack::with(config, |bootstrap| bootstrap.setting("/model_rewrites", rules)).await
}

fn bodies(text: &str) -> [(&'static str, Value, bool); 8] {
    let messages = json!([{ "role": "user", "content": text }]);
    let chat = |stream: bool| json!({ "messages": messages, "max_tokens": 4, "stream": stream });
    let responses = |stream: bool| json!({ "input": text, "max_output_tokens": 4, "stream": stream });
    [
        (CHAT, chat(false), false),
        (CHAT, chat(true), true),
        ("/v1/completions", json!({ "prompt": text, "max_tokens": 4, "stream": true }), true),
        ("/v1/responses", responses(false), false),
        ("/v1/responses", responses(true), true),
        ("/v1/messages", chat(false), false),
        ("/v1/messages", chat(true), true),
        ("/v1/embeddings", json!({ "input": [text] }), false),
    ]
}

/// The body with the model in front, where it is seen however long the rest is.
fn naming(model: &str, body: &Value) -> String {
    body.to_string().replacen('{', &format!("{{\"model\":\"{model}\","), 1)
}

/// Every name of a model in an answer.
fn names(answer: &Answer, streams: bool) -> Result<Vec<Value>> {
    let documents = if streams { answer.events()? } else { vec![answer.json()?] };
    let places = ["/model", "/response/model", "/message/model"];
    Ok(documents
        .iter()
        .flat_map(|document| places.iter().filter_map(|place| document.pointer(place).cloned()))
        .collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_and_clients_each_see_the_name_they_know() -> Result<()> {
    let stack = stack().await?;
    let mut sent = 0;
    // Far beyond `max_body_bytes` too, and many on one connection: a wrong length would break the next.
    for text in ["Hello".to_owned(), "long ".repeat(100_000)] {
        for client in [stack.client.clone(), Client::http2(stack.envoy.address())] {
            for model in CLIENTS {
                for (path, body, streams) in bodies(&text) {
                    let expected = fnv1a(naming("sim", &body).as_bytes());
                    let body = naming(model, &body);
                    let request = client.request(Method::POST, path).header("accept-encoding", "gzip");
                    let request = match sent % 2 {
                        0 => request.body(body),
                        _ => {
                            let pieces: Vec<_> = body.as_bytes().chunks(50_000).map(Bytes::copy_from_slice).collect();
                            let pieces = stream::iter(pieces.into_iter().map(Ok::<_, Infallible>));
                            request.body(reqwest::Body::wrap_stream(pieces))
                        }
                    };
                    let answer = Answer::to(request.header("content-type", "application/json")).await?;
                    assert_eq!(answer.status, 200, "{path}: {answer:?}");
                    assert_eq!(answer.header("x-body-fnv"), Some(&*expected), "{path} {sent}");
                    let names = names(&answer, streams)?;
                    assert!(!names.is_empty() && names.iter().all(|name| name == model), "{path}: {names:?}");
                    sent += 1;
                }
            }
        }
    }
    assert_eq!(stack.envoy.picker_stat("rewritten_total").await?, sent);
    assert!(!stack.envoy.log().contains("panicked"), "{}", stack.envoy.log());

    let body = json!({ "model": "lost", "messages": [{ "role": "user", "content": "Hello" }] });
    let lost = stack.client.post(CHAT, &body).await?;
    assert_eq!(lost.status, 404);
    assert!(lost.served_by().is_ok() && lost.json()?.to_string().contains("nobody"), "{lost:?}");
    assert_eq!(stack.envoy.picker_stat("rewrite_targets_unknown_total").await?, 1);
    ends_with_trailers(&stack).await
}

/// Such a body has no body call at its end.
async fn ends_with_trailers(stack: &Stack) -> Result<()> {
    for model in CLIENTS {
        let body = |model: &str| format!(r#"{{"model":"{model}","prompt":"Hello","max_tokens":2}}"#);
        let socket = TcpStream::connect(stack.envoy.address()).await?;
        let (mut sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(socket)).await?;
        tokio::spawn(connection);
        let mut trailers = HeaderMap::new();
        trailers.insert("x-checksum", HeaderValue::from_static("none"));
        let frames = [Frame::data(Bytes::from(body(model))), Frame::trailers(trailers)];
        let frames = StreamBody::new(stream::iter(frames.map(Ok::<_, Infallible>)));
        let uri = format!("http://{}/v1/completions", stack.envoy.address());
        let answer = sender.send_request(hyper::Request::post(uri).body(frames)?).await?;
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.headers()["x-body-fnv"], *fnv1a(body("sim").as_bytes()));
        let text = answer.into_body().collect().await?.to_bytes();
        let answer: Value = serde_json::from_slice(&text)?;
        assert_eq!(answer.pointer("/model"), Some(&json!(model)));
    }
    Ok(())
}
