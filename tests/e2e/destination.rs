//! The picker alone chooses the server, and what it names is what answers.

use std::collections::HashSet;
use std::net::SocketAddr;

use anyhow::{Context, Result};
use reqwest::Method;
use serde_json::json;
use sim::server::ServerConfig;
use testbed::envoy::at;
use testbed::{Answer, Bootstrap, Envoy};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::{Stack, ask, chat, words};

const DESTINATION: &str = "x-gateway-destination-endpoint";

#[tokio::test(flavor = "multi_thread")]
async fn the_server_named_first_is_the_one_that_answers() -> Result<()> {
    // The header is hidden from the servers; here it stays, and comes back with the answer.
    let show_destination = |bootstrap: Bootstrap| {
        let http =
            "typed_extension_protocol_options/envoy.extensions.upstreams.http.v3.HttpProtocolOptions/http_filters";
        let codec = bootstrap.at(&format!("{}/{http}/1", at::CLUSTER))?.clone();
        let named = json!([{ "header": { "key": "x-named", "value": format!("%REQ({DESTINATION})%") } }]);
        bootstrap
            .set(&format!("{}/{http}", at::CLUSTER), json!([codec]))?
            .set(&format!("{}/route_config/response_headers_to_add", at::HTTP), named)
    };
    let stack = Stack::with(ServerConfig { speedup: 20.0, ..ServerConfig::default() }, show_destination).await?;
    for question in 0..20 {
        let answer = ask(&stack.client, "/v1/chat/completions", &chat(&words(question, 300))).await?;
        let named = answer.header("x-named").context("nothing was named")?;
        let named: Vec<SocketAddr> = named.split(',').map(|name| name.trim().parse()).collect::<Result<_, _>>()?;
        assert_eq!(named[0], answer.served_by()?);
        assert_eq!(named.iter().collect::<HashSet<_>>().len(), 3, "two to fall back on: {named:?}");
    }
    assert_eq!(stack.envoy.picker_stat("served_elsewhere_total").await?, 0);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_cannot_choose_its_server() -> Result<()> {
    let stack = Stack::start().await?;
    let wish = stack.fleet.addresses()[2].to_string();
    for (method, path) in [(Method::GET, "/v1/models"), (Method::POST, "/v1/completions")] {
        let mut servers = HashSet::new();
        for question in 0..40 {
            let body = json!({ "model": "sim", "prompt": words(question, 100), "max_tokens": 2 });
            let request = stack.client.request(method.clone(), path).json(&body);
            let request = request.header("X-Gateway-Destination-Endpoint", &wish).header(DESTINATION, &wish);
            servers.insert(Answer::to(request).await?.served_by()?);
        }
        assert_eq!(servers.len(), 4, "{method} {path}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_does_not_see_the_header() -> Result<()> {
    let server = TcpListener::bind("127.0.0.1:0").await?;
    let address = server.local_addr()?;
    // Answers with the head of the request, as it came.
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = server.accept().await {
            tokio::spawn(async move {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(stream.read_u8().await?);
                }
                let answer = format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", head.len());
                stream.write_all(&[answer.as_bytes(), &head].concat()).await
            });
        }
    });
    let envoy = Envoy::start(&Bootstrap::new(&[address])?).await?;
    envoy.picker_stat_reaches("endpoints", 1).await?;
    let request = envoy.client().request(Method::GET, "/v1/models").header(DESTINATION, "127.0.0.1:1");
    let head = String::from_utf8(Answer::to(request).await?.body.to_vec())?;
    assert!(head.starts_with("GET /v1/models HTTP/1.1"), "{head}");
    assert!(!head.to_lowercase().contains(DESTINATION), "{head}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_just_died_is_passed_over() -> Result<()> {
    let mut stack = Stack::start().await?;
    stack.fleet.kill(1).await?;
    let dead = stack.fleet.addresses()[1];
    for question in 0..20 {
        let answer = ask(&stack.client, "/v1/chat/completions", &chat(&words(question, 100))).await?;
        assert_ne!(answer.served_by()?, dead);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_says_why_for_who_wants_to_see_it() -> Result<()> {
    let stack = Stack::start().await?;
    stack.envoy.show_log_from("debug").await?;
    // The level is looked at once a second.
    let explained = async |envoy: &Envoy| {
        ask(&stack.client, "/v1/chat/completions", &chat("why there?")).await.ok()?;
        envoy.log().contains(" s (expected-cost-scorer ").then_some(())
    };
    stack.envoy.until("a decision in the log", explained).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_answer_says_why_if_it_is_asked_to() -> Result<()> {
    let told = |bootstrap: Bootstrap| {
        let profile = json!({
            "scorers": [{ "type": "expected-cost-scorer" }],
            "picker": { "type": "max-score-picker", "parameters": { "maxNumOfEndpoints": 2 } },
        });
        bootstrap.setting("/explain", json!("header"))?.setting("/profile", profile)
    };
    let stack = Stack::with(ServerConfig::default(), told).await?;
    let answer = ask(&stack.client, "/v1/chat/completions", &chat(&words(1, 1000))).await?;
    let why = answer.header("x-endpoint-picker-decision").context("no word of it")?;
    let (chosen, next) = why.split_once(" before ").context("no runner-up")?;
    assert!(chosen.starts_with(&answer.served_by()?.to_string()), "{why}");
    assert!(chosen.contains("prefill 0.") && next.contains("prefill 0."), "{why}");

    let silent = Stack::start().await?;
    let answer = ask(&silent.client, "/v1/chat/completions", &chat("Hello")).await?;
    assert_eq!(answer.header("x-endpoint-picker-decision"), None);
    Ok(())
}
