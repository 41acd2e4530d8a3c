//! What happens when metrics, servers or the scraper fail.

use std::collections::HashSet;

use anyhow::Result;
use serde_json::json;
use sim::server::{MetricsFault, ServerConfig};
use testbed::{Bootstrap, Client, Envoy, Fleet};

use crate::{Held, Stack, ask, chat, words};

const PATH: &str = "/v1/chat/completions";

/// A stack without a singleton, so that nothing is known until a worker takes its place after a second.
async fn before_the_first_scrape(change: impl FnOnce(Bootstrap) -> Result<Bootstrap>) -> Result<(Fleet, Envoy)> {
    let fleet = Fleet::start(4, ServerConfig::default()).await?;
    let envoy = Envoy::start(&change(Bootstrap::new(fleet.addresses())?.without_scraper()?)?).await?;
    Ok((fleet, envoy))
}

/// Whether a worker has begun to scrape, which a slow machine may not let us be faster than.
fn is_too_late(envoy: &Envoy) -> bool {
    envoy.log().contains("scraping 4 endpoints here")
}

#[tokio::test(flavor = "multi_thread")]
async fn closed_refuses_as_long_as_nothing_is_known() -> Result<()> {
    let (_fleet, envoy) = before_the_first_scrape(Ok).await?;
    let client = envoy.client();
    for (path, kind) in [(PATH, "service_unavailable"), ("/v1/messages", "overloaded_error")] {
        let answer = client.post(path, &chat("Hello")).await?;
        if answer.status == 200 && is_too_late(&envoy) {
            break;
        }
        assert_eq!((answer.status.as_u16(), answer.header("retry-after")), (503, Some("1")), "{answer:?}");
        assert_eq!(answer.header("content-type"), Some("application/json"));
        assert_eq!(answer.json()?["error"]["type"], kind, "each API has its form of error: {answer:?}");
    }
    let get = client.get("/v1/models").await?;
    assert!(get.json()?["error"]["code"] == "no_snapshot" || is_too_late(&envoy), "{get:?}");

    let served = async |_: &Envoy| client.post(PATH, &chat("Hello")).await.ok()?.served_by().ok();
    envoy.until("a worker that scrapes in the singleton's place", served).await?;
    envoy.picker_stat_reaches("scrapes_read_total", 8).await
}

#[tokio::test(flavor = "multi_thread")]
async fn open_leaves_the_choice_to_envoy_as_long_as_nothing_is_known() -> Result<()> {
    let (_fleet, envoy) = before_the_first_scrape(Bootstrap::fail_open).await?;
    let client = envoy.client();
    ask(&client, PATH, &chat("Hello")).await?;
    client.get("/v1/models").await?.served_by()?;
    assert!(envoy.picker_stat("failed_open_total").await? >= 2 || is_too_late(&envoy));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_that_died_answers_json_and_comes_back_with_its_first_server() -> Result<()> {
    let mut stack = Stack::start().await?;
    for at in 0..4 {
        stack.fleet.kill(at).await?;
    }
    for answer in [stack.client.post(PATH, &chat("Hello")).await?, stack.client.get("/v1/models").await?] {
        assert_eq!((answer.status.as_u16(), answer.header("retry-after")), (503, Some("1")), "{answer:?}");
        assert_eq!(answer.header("content-type"), Some("application/json"));
        assert_eq!(answer.json()?["error"]["type"], "service_unavailable");
    }
    stack.envoy.picker_stat_reaches("endpoints_unreachable", 4).await?;
    stack.fleet.restart(2).await?;
    let back = stack.fleet.addresses()[2];
    let served = async |_: &Envoy| stack.client.post(PATH, &chat("Hello")).await.ok()?.served_by().ok();
    assert_eq!(stack.envoy.until("an answer", served).await?, back);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_that_fail_everywhere_do_not_close_the_pool() -> Result<()> {
    let stack = Stack::start().await?;
    for at in 0..4 {
        stack.fleet.faults(at)?.set_metrics(MetricsFault::Status(500));
    }
    stack.envoy.picker_stat_reaches("endpoints_unreachable", 4).await?;
    let mut servers = HashSet::new();
    for question in 0..40 {
        servers.insert(ask(&stack.client, PATH, &chat(&words(question, 50))).await?.served_by()?);
    }
    assert_eq!(servers.len(), 4);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_that_cannot_be_read_leave_the_servers_in_service() -> Result<()> {
    let faults = [MetricsFault::Json, MetricsFault::Html, MetricsFault::Redirect, MetricsFault::Empty];
    let stack = Stack::start().await?;
    for (at, fault) in faults.into_iter().enumerate() {
        stack.fleet.faults(at)?.set_metrics(fault);
    }
    stack.envoy.picker_stat_reaches("scrapes_without_metrics_total", 3).await?;
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
    // The workers learn it a tick after the scraper has counted it.
    let is_avoided = async |_: &Envoy| (!round(0).await.ok()?.contains(&sick)).then_some(());
    stack.envoy.until("a silent server being avoided", is_avoided).await?;
    stack.fleet.faults(0)?.set_metrics(MetricsFault::Ok);
    let none_is_out = async |envoy: &Envoy| (envoy.picker_stat("endpoints_unreachable").await.ok()? == 0).then_some(());
    stack.envoy.until("all servers back", none_is_out).await?;
    let is_taken = async |_: &Envoy| round(100).await.ok()?.contains(&sick).then_some(());
    stack.envoy.until("a server that is back being used", is_taken).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn stale_metrics_lose_their_say() -> Result<()> {
    let stale_soon = |bootstrap: Bootstrap| {
        let profile = json!({
            "filters": [{ "type": "healthy" }],
            "scorers": [{ "type": "running-requests-size-scorer" }],
            "picker": { "type": "max-score-picker" },
        });
        bootstrap.setting("/scrape/stale_after", json!("300ms"))?.setting("/profile", profile)
    };
    let stack = Stack::with(ServerConfig::default(), stale_soon).await?;
    let busy = stack.fleet.addresses()[1];
    let _held = Held::open(&Client::new(busy), "sim").await?;
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
    Ok(())
}
