//! Bodies of any size, and headers of any bytes.

use std::convert::Infallible;

use anyhow::Result;
use futures_util::stream;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Bytes, Frame};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use reqwest::Method;
use reqwest::header::{HeaderMap, HeaderValue};
use serde_json::json;
use testbed::{Answer, Client};
use tokio::net::TcpStream;

use crate::{Stack, ask, chat, fnv1a};

const PATH: &str = "/v1/chat/completions";

/// A chat with a picture in it: far beyond `max_body_bytes` and the connection's buffer limit.
fn large() -> Bytes {
    let url = format!("data:image/png;base64,{}", "iVBORw0K".repeat(375_000));
    let parts =
        json!([{ "type": "text", "text": "What is this?" }, { "type": "image_url", "image_url": { "url": url } }]);
    let body = json!({ "model": "sim", "messages": [{ "role": "user", "content": parts }], "max_tokens": 2 });
    Bytes::from(body.to_string())
}

fn pieces(body: &Bytes) -> Vec<Bytes> {
    body.chunks(50_000).map(Bytes::copy_from_slice).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn three_megabytes_pass_whole() -> Result<()> {
    let stack = Stack::start().await?;
    let body = large();
    let hash = fnv1a(&body);
    for client in [stack.client.clone(), Client::http2(stack.envoy.address())] {
        let declared = Answer::to(client.request(Method::POST, PATH).body(body.clone())).await?;
        let chunks = stream::iter(pieces(&body).into_iter().map(Ok::<_, Infallible>));
        let chunked = Answer::to(client.request(Method::POST, PATH).body(reqwest::Body::wrap_stream(chunks))).await?;
        for answer in [declared, chunked] {
            assert_eq!(answer.status, 200, "{answer:?}");
            assert_eq!(answer.header("x-body-fnv"), Some(&*hash), "{answer:?}");
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn three_megabytes_survive_the_death_of_the_server_they_went_to() -> Result<()> {
    let mut stack = Stack::start().await?;
    let body = large();
    let home = Answer::to(stack.client.request(Method::POST, PATH).body(body.clone())).await?.served_by()?;
    let at = stack.fleet.addresses().iter().position(|address| *address == home).unwrap();
    stack.fleet.kill(at).await?;
    let answer = Answer::to(stack.client.request(Method::POST, PATH).body(body.clone())).await?;
    assert_eq!(answer.header("x-body-fnv"), Some(&*fnv1a(&body)), "{answer:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_ends_with_trailers_is_placed_and_passes_whole() -> Result<()> {
    let stack = Stack::start().await?;
    for body in [Bytes::from(chat("Hello").to_string()), large()] {
        let socket = TcpStream::connect(stack.envoy.address()).await?;
        let (mut sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(socket)).await?;
        tokio::spawn(connection);
        let mut trailers = HeaderMap::new();
        trailers.insert("x-checksum", HeaderValue::from_static("none"));
        let data = pieces(&body).into_iter().map(Frame::data);
        let frames = data.chain([Frame::trailers(trailers)]).map(Ok::<_, Infallible>);
        let uri = format!("http://{}{PATH}", stack.envoy.address());
        let request = hyper::Request::post(uri).body(StreamBody::new(stream::iter(frames)))?;
        let answer = sender.send_request(request).await?;
        assert_eq!(answer.status(), 200, "{} bytes", body.len());
        assert_eq!(answer.headers()["x-body-fnv"], *fnv1a(&body));
        answer.into_body().collect().await?;
    }
    assert_eq!(stack.envoy.picker_stat("picks_total").await?, 2);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn header_bytes_that_are_not_text_harm_nobody() -> Result<()> {
    let stack = Stack::start().await?;
    let names = ["user-agent", "x-forwarded-for", "content-type", "content-encoding", "authorization", "x-session-id"];
    let noise = HeaderValue::from_bytes(b"\xff\xfe\xa1")?;
    for name in names.into_iter().chain(["x-gateway-destination-endpoint", "traceparent", "cookie", "accept"]) {
        let request = stack.client.request(Method::POST, PATH).header(name, &noise);
        let answer = Answer::to(request.body(chat("Hello").to_string())).await?;
        assert_eq!(answer.status, 200, "{name}: {answer:?}");
    }
    for worker in 0..20 {
        ask(&Client::new(stack.envoy.address()), PATH, &chat("Still there?"))
            .await
            .inspect_err(|_| eprintln!("{worker}"))?;
    }
    assert!(!stack.envoy.log().contains("panicked"), "{}", stack.envoy.log());
    Ok(())
}
