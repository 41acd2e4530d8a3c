//! What happens when metrics, servers or the scraper fail.

use std::collections::HashSet;

use anyhow::Result;
use reqwest::Method;
use serde_json::{Value, json};
use sim::server::{MetricsFault, ServerConfig};
use testbed::{Answer, Bootstrap, Envoy, Fleet};

use crate::{Stack, ask, chat, words};

const PATH: &str = "/v1/chat/completions";

async fn post(stack: &Stack, path: &str) -> Result<Answer> {
    stack.client.post(path, &chat("Hello")).await
}

#[tokio::test(flavor = "multi_thread")]
async fn closed_refuses_with_json_when_every_server_is_gone() -> Result<()> {
    let mut stack = Stack::start().await?;
    for at in 0..4 {
        stack.fleet.kill(at).await?;
    }
    stack.envoy.picker_stat_reaches("endpoints_unreachable", 4).await?;
    let answers = [post(&stack, PATH).await?, stack.client.get("/v1/models").await?];
    for answer in answers {
        assert_eq!((answer.status.as_u16(), answer.header("retry-after")), (503, Some("1")), "{answer:?}");
        assert_eq!(answer.header("content-type"), Some("application/json"));
        assert_eq!(answer.json()?["error"]["type"], "service_unavailable");
    }
    let anthropic = post(&stack, "/v1/messages").await?;
    assert_eq!(
        anthropic.json()?["error"]["type"],
        "overloaded_error",
        "a client of this API expects its form of error"
    );

    stack.fleet.restart(2).await?;
    let back = stack.fleet.addresses()[2];
    let served = async |_: &Envoy| post(&stack, PATH).await.ok()?.served_by().ok();
    assert_eq!(stack.envoy.until("an answer", served).await?, back);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn open_leaves_the_choice_to_envoy_when_no_server_can_be_named() -> Result<()> {
    let stack = Stack::with(ServerConfig::default(), Bootstrap::fail_open).await?;
    for at in 0..4 {
        stack.fleet.faults(at)?.set_metrics(MetricsFault::Hang);
    }
    stack.envoy.picker_stat_reaches("endpoints_unreachable", 4).await?;
    let mut servers = HashSet::new();
    for _ in 0..8 {
        servers.insert(post(&stack, PATH).await?.served_by()?);
        servers.insert(stack.client.get("/v1/models").await?.served_by()?);
    }
    assert_eq!(servers.len(), 4);
    assert_eq!(stack.envoy.picker_stat("failed_open_total").await?, 16);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_that_cannot_be_read_leave_the_servers_in_service() -> Result<()> {
    let faults = [MetricsFault::Json, MetricsFault::Html, MetricsFault::Redirect, MetricsFault::CutOff];
    let stack = Stack::start().await?;
    for (at, fault) in faults.into_iter().enumerate() {
        stack.fleet.faults(at)?.set_metrics(fault);
    }
    stack.envoy.picker_stat_reaches("scrapes_cut_off_total", 1).await?;
    stack.envoy.picker_stat_reaches("scrapes_without_metrics_total", 2).await?;
    stack.envoy.picker_stat_reaches("scrapes_wrong_path_total", 1).await?;
    let mut servers = HashSet::new();
    for question in 0..40 {
        servers.insert(ask(&stack.client, PATH, &chat(&words(question, 50))).await?.served_by()?);
    }
    assert_eq!(servers.len(), 4, "with no signal of any server, what is in flight decides");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_hangs_is_avoided_until_it_is_back() -> Result<()> {
    let stack = Stack::start().await?;
    let sick = stack.fleet.addresses()[0];
    stack.fleet.faults(0)?.set_metrics(MetricsFault::Hang);
    stack.envoy.picker_stat_reaches("endpoints_unreachable", 1).await?;
    let round = async |first: usize| -> Result<HashSet<_>> {
        let mut servers = HashSet::new();
        for question in first..first + 30 {
            servers.insert(ask(&stack.client, PATH, &chat(&words(question, 50))).await?.served_by()?);
        }
        Ok(servers)
    };
    assert!(!round(0).await?.contains(&sick));
    stack.fleet.faults(0)?.set_metrics(MetricsFault::Ok);
    let none_is_out = async |envoy: &Envoy| (envoy.picker_stat("endpoints_unreachable").await.ok()? == 0).then_some(());
    stack.envoy.until("all servers back", none_is_out).await?;
    assert!(round(100).await?.contains(&sick));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn stale_metrics_lose_their_say() -> Result<()> {
    // All but the first claim to be busy and then fall silent; once that is stale, it must not count any more.
    let busy = ServerConfig { speedup: 1.0, ..ServerConfig::default() };
    let stale_soon = |config: &mut Value| {
        config["scrape"]["stale_after"] = json!("300ms");
        config["profile"]["scorers"] = json!([{ "type": "running-requests-size-scorer", "weight": 1 }]);
    };
    let stack = Stack::with(busy, |bootstrap| bootstrap.picker(stale_soon)).await?;
    let direct = testbed::Client::new(stack.fleet.addresses()[1]);
    let long = json!({ "model": "sim", "prompt": "Busy", "max_tokens": 150 });
    let held = tokio::spawn(async move { direct.post("/v1/completions", &long).await });
    let busy = stack.fleet.addresses()[1];
    let round = async || -> Result<HashSet<_>> {
        let mut servers = HashSet::new();
        for _ in 0..30 {
            servers.insert(stack.client.get("/v1/models").await?.served_by()?);
        }
        Ok(servers)
    };
    let avoided = async |_: &Envoy| (!round().await.ok()?.contains(&busy)).then_some(());
    stack.envoy.until("a busy server being avoided", avoided).await?;
    stack.fleet.faults(1)?.set_metrics(MetricsFault::Json);
    let taken = async |_: &Envoy| round().await.ok()?.contains(&busy).then_some(());
    stack.envoy.until("a server with stale metrics being used", taken).await?;
    held.await??;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_scrapes_when_there_is_no_singleton() -> Result<()> {
    let fleet = Fleet::start(4, ServerConfig::default()).await?;
    let envoy = Envoy::start(&Bootstrap::new(fleet.addresses())?.without_scraper()?).await?;
    let early = envoy.client().post(PATH, &chat("Hello")).await?;
    // Nobody has scraped yet, unless this machine took more than the second that a worker waits.
    if early.status == 503 {
        assert_eq!(early.json()?["error"]["code"], "no_snapshot");
    }
    envoy.picker_stat_reaches("scrapes_read_total", 8).await?;
    let answer = Answer::to(envoy.client().request(Method::POST, PATH).json(&chat("Hello"))).await?;
    assert_eq!(answer.status, 200, "{answer:?}");
    Ok(())
}
