//! Servers come and go under load, and nobody notices.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result};
use serde_json::json;
use sim::server::{MetricsFault, ServerConfig};
use testbed::Client;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

use crate::{Stack, ask, words};

/// Sends `total` requests over `clients` connections at a time; each answer is checked, and told.
fn load(client: &Client, total: usize, clients: usize, streams: bool) -> (JoinSet<Result<()>>, UnboundedReceiver<()>) {
    let (done, answers) = unbounded_channel();
    let next = Arc::new(AtomicUsize::new(0));
    let mut running = JoinSet::new();
    for _ in 0..clients {
        let (client, next, done): (_, _, UnboundedSender<()>) = (client.clone(), Arc::clone(&next), done.clone());
        running.spawn(async move {
            loop {
                let request = next.fetch_add(1, Ordering::Relaxed);
                if request >= total {
                    return Ok(());
                }
                let (system, question) = (words(request % 10, 100), words(1000 + request, 10));
                let prompt = format!("{system}{question}");
                let stream = streams && request % 2 == 0;
                let body = json!({ "model": "sim", "prompt": prompt, "max_tokens": 10, "stream": stream });
                let answer =
                    ask(&client, "/v1/completions", &body).await.with_context(|| format!("request {request}"))?;
                if stream {
                    anyhow::ensure!(
                        answer.body.ends_with(b"data: [DONE]\n\n"),
                        "request {request} was cut: {answer:?}"
                    );
                }
                let _ = done.send(());
            }
        });
    }
    (running, answers)
}

async fn answered(answers: &mut UnboundedReceiver<()>, count: usize) -> bool {
    for _ in 0..count {
        if answers.recv().await.is_none() {
            return false;
        }
    }
    true
}

async fn all(mut running: JoinSet<Result<()>>) -> Result<()> {
    while let Some(ended) = running.join_next().await {
        ended??;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_thousand_requests_none_is_lost_while_servers_stop_and_restart() -> Result<()> {
    let mut stack = Stack::with(ServerConfig { speedup: 10.0, ..ServerConfig::default() }, Ok).await?;
    let (running, mut answers) = load(&stack.client, 2000, 16, true);
    let faults = [MetricsFault::Status(500), MetricsFault::CutOff, MetricsFault::Html, MetricsFault::Slow(150)];
    let mut faults = faults.into_iter().cycle();
    let mut restarts = 0;
    'load: for at in (0..4).cycle() {
        for other in (0..4).filter(|other| *other != at) {
            stack.fleet.faults(other)?.set_metrics(MetricsFault::Ok);
        }
        stack.fleet.faults((at + 2) % 4)?.set_metrics(faults.next().unwrap_or_default());
        if !answered(&mut answers, 60).await {
            break 'load;
        }
        stack.fleet.stop(at).await?;
        let more = answered(&mut answers, 60).await;
        stack.fleet.restart(at).await?;
        restarts += 1;
        if !more {
            break 'load;
        }
    }
    all(running).await?;
    assert!(restarts >= 12, "only {restarts} restarts");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn no_unanswered_request_is_lost_when_servers_die() -> Result<()> {
    let mut stack = Stack::with(ServerConfig { speedup: 10.0, ..ServerConfig::default() }, Ok).await?;
    let (running, mut answers) = load(&stack.client, 600, 16, false);
    for at in (0..4).cycle() {
        if !answered(&mut answers, 50).await {
            break;
        }
        stack.fleet.kill(at).await?;
        let more = answered(&mut answers, 50).await;
        stack.fleet.restart(at).await?;
        if !more {
            break;
        }
    }
    all(running).await
}
