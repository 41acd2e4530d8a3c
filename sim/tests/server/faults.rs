//! What goes wrong on request, and how servers end.

use std::io::ErrorKind;
use std::time::Duration;

use crate::client::{chat, events, fast, get, json_of, post, slow_config, start, stats_when, url};
use futures_util::StreamExt;
use reqwest::Client;
use serde_json::json;
use sim::Flavor;
use sim::server::{CompletionsFault, FaultSet, MetricsFault, Server, ServerConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

/// Longer than anything sound takes, shorter than a test may.
const SOON: Duration = Duration::from_secs(10);

#[tokio::test]
async fn metrics_fail_in_every_way_and_recover() {
    let server = fast().await;
    let client = Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let scrape = async || client.get(url(&server, "/metrics")).send().await.unwrap();
    let sound = scrape().await.text().await.unwrap();
    assert!(sound.contains("vllm:num_requests_waiting"));

    server.faults().set_metrics(MetricsFault::Status(500));
    assert_eq!(scrape().await.status(), 500);
    server.faults().set_metrics(MetricsFault::Redirect);
    assert_eq!(scrape().await.status(), 302);
    server.faults().set_metrics(MetricsFault::Json);
    assert_eq!(json_of(scrape().await).await, json!({"status": "ok"}));
    server.faults().set_metrics(MetricsFault::Html);
    assert!(scrape().await.text().await.unwrap().starts_with("<!DOCTYPE html>"));
    server.faults().set_metrics(MetricsFault::Empty);
    assert_eq!(scrape().await.text().await.unwrap(), "");
    server.faults().set_metrics(MetricsFault::Oversized);
    assert!(scrape().await.text().await.unwrap().len() >= 5 << 20);

    server.faults().set_metrics(MetricsFault::CutOff);
    let cut = scrape().await;
    assert!(cut.content_length().unwrap() as usize > sound.len() * 9 / 10);
    assert!(cut.text().await.is_err());

    server.faults().set_metrics(MetricsFault::Slow(200));
    let started = Instant::now();
    assert_eq!(scrape().await.status(), 200);
    assert!(started.elapsed() >= Duration::from_millis(200));

    server.faults().set_metrics(MetricsFault::Hang);
    assert!(timeout(Duration::from_millis(300), client.get(url(&server, "/metrics")).send()).await.is_err());
    server.faults().set_metrics(MetricsFault::Ok);
    assert!(scrape().await.text().await.unwrap().contains("vllm:num_requests_waiting"));
    server.stop().await;
}

#[tokio::test]
async fn faults_are_set_over_http() {
    let server = fast().await;
    let body = json!({"metrics": {"slow": 5}, "completions": {"reset": 2}});
    assert_eq!(json_of(post(&server, "/sim/faults", &body).await).await, body);
    let set = FaultSet { metrics: MetricsFault::Slow(5), completions: CompletionsFault::Reset(2) };
    assert_eq!(server.faults().get(), set);
    assert_eq!(post(&server, "/sim/faults", &json!({"metrics": "cut-off"})).await.status(), 200);
    assert_eq!(server.faults().get(), FaultSet { metrics: MetricsFault::CutOff, ..FaultSet::default() });
    assert_eq!(post(&server, "/sim/faults", &json!({"metrics": "on fire"})).await.status(), 400);
    assert_eq!(post(&server, "/sim/faults", &json!({"metric": "hang"})).await.status(), 400);
    assert_eq!(post(&server, "/sim/faults", &json!({})).await.status(), 200);
    assert_eq!(server.faults().get(), FaultSet::default());
    server.stop().await;
}

#[tokio::test]
async fn completions_are_refused_with_a_status() {
    let server = fast().await;
    for (code, retry) in [(500, false), (503, true), (429, true)] {
        server.faults().set_completions(CompletionsFault::Status(code));
        let response = post(&server, "/v1/chat/completions", &chat("hello", 3)).await;
        assert_eq!(response.status(), code);
        assert_eq!(response.headers().contains_key("retry-after"), retry);
        assert_eq!(json_of(response).await["error"]["code"], code);
    }
    assert_eq!(server.stats().requests, 0);
    server.stop().await;
}

#[tokio::test]
async fn hung_completion_never_answers_until_the_server_stops() {
    let server = fast().await;
    server.faults().set_completions(CompletionsFault::Hang);
    let to = url(&server, "/v1/chat/completions");
    let mut call = tokio::spawn(Client::new().post(to).body(chat("hello", 3).to_string()).send());
    assert!(timeout(Duration::from_millis(200), &mut call).await.is_err());
    timeout(SOON, server.stop()).await.expect("stops");
    assert_eq!(call.await.unwrap().unwrap().status(), 503);
}

#[tokio::test]
async fn stream_is_reset_after_so_many_tokens() {
    let server = fast().await;
    server.faults().set_completions(CompletionsFault::Reset(3));
    let mut body = chat("hello", 50);
    body["stream"] = json!(true);
    let mut chunks = post(&server, "/v1/chat/completions", &body).await.bytes_stream();
    let (mut text, mut broken) = (String::new(), false);
    while let Some(chunk) = chunks.next().await {
        match chunk {
            Ok(chunk) => text.push_str(std::str::from_utf8(&chunk).unwrap()),
            Err(_) => broken = true,
        }
    }
    assert!(broken);
    // The role, then three tokens.
    assert_eq!(text.matches("data: ").count(), 4);
    stats_when(&server, |stats| stats.in_flight == 0).await;

    let whole = Client::new().post(url(&server, "/v1/chat/completions")).body(chat("hello", 50).to_string());
    let answer = async { whole.send().await?.bytes().await };
    assert!(answer.await.is_err());
    server.stop().await;
}

#[tokio::test]
async fn client_that_goes_away_frees_the_engine() {
    let server = start(slow_config()).await;
    for stream in [true, false] {
        let mut body = chat("hello", 10_000);
        body["stream"] = json!(stream);
        let to = url(&server, "/v1/chat/completions");
        let call = tokio::spawn(async move {
            let response = Client::new().post(to).body(body.to_string()).send().await;
            response.unwrap().bytes().await
        });
        stats_when(&server, |stats| stats.running == 1).await;
        call.abort();
        stats_when(&server, |stats| stats.in_flight == 0 && stats.running == 0 && stats.kv_usage == 0.0).await;
    }
    server.stop().await;
}

#[tokio::test]
async fn queue_shows_on_the_metrics_page() {
    let server = start(slow_config()).await;
    let calls: Vec<_> = (0..3)
        .map(|_| {
            let call = Client::new().post(url(&server, "/v1/chat/completions")).body(chat("hello", 1000).to_string());
            tokio::spawn(call.send())
        })
        .collect();
    stats_when(&server, |stats| (stats.running, stats.waiting) == (1, 2)).await;
    let page = get(&server, "/metrics").await.text().await.unwrap();
    assert!(page.contains("vllm:num_requests_running{engine=\"0\",model_name=\"sim\"} 1.0\n"));
    assert!(page.contains("vllm:num_requests_waiting{engine=\"0\",model_name=\"sim\"} 2.0\n"));
    calls.iter().for_each(tokio::task::JoinHandle::abort);
    server.kill().await;
}

#[tokio::test]
async fn trtllm_has_its_page_elsewhere() {
    let config = ServerConfig { flavor: Flavor::TrtllmServe, ..ServerConfig::default() };
    let server = start(config).await;
    assert!(json_of(get(&server, "/metrics").await).await.is_array());
    let page = get(&server, "/prometheus/metrics").await.text().await.unwrap();
    assert!(page.contains("# TYPE trtllm_num_requests_waiting gauge"));
    server.stop().await;
    let server = fast().await;
    assert_eq!(get(&server, "/prometheus/metrics").await.status(), 404);
    server.stop().await;
}

#[tokio::test]
async fn stop_lets_streams_finish_and_the_port_is_free_again() {
    let server = start(slow_config()).await;
    let addr = server.addr();
    let mut body = chat("hello", 10);
    body["stream"] = json!(true);
    let response = post(&server, "/v1/chat/completions", &body).await;
    let (events, ()) = timeout(SOON, async { tokio::join!(events(response), server.stop()) }).await.unwrap();
    assert_eq!(events.len(), 1 + 10 + 1);
    assert!(reqwest::get(format!("http://{addr}/health")).await.is_err());

    let again = start(ServerConfig { listen: addr, ..ServerConfig::default() }).await;
    assert_eq!(get(&again, "/health").await.status(), 200);
    assert_eq!(again.stats().requests, 0);
    again.stop().await;
}

#[tokio::test]
async fn kill_resets_streams_in_flight_and_the_port_is_free_again() {
    let server = start(slow_config()).await;
    let addr = server.addr();
    let mut body = chat("hello", 10_000);
    body["stream"] = json!(true);
    let mut chunks = post(&server, "/v1/chat/completions", &body).await.bytes_stream();
    assert!(chunks.next().await.unwrap().is_ok());
    timeout(SOON, server.kill()).await.expect("dies at once");
    let broken = timeout(SOON, async {
        while let Some(chunk) = chunks.next().await {
            if chunk.is_err() {
                return true;
            }
        }
        false
    });
    assert!(broken.await.unwrap());

    let again = start(ServerConfig { listen: addr, ..ServerConfig::default() }).await;
    assert_eq!(get(&again, "/health").await.status(), 200);
    again.stop().await;
}

/// Starts a long stream on a bare socket; gives how the socket ends.
async fn long_stream(server: &Server) -> JoinHandle<std::io::Result<usize>> {
    let mut body = chat("hello", 10_000);
    body["stream"] = json!(true);
    let body = body.to_string();
    let head = format!("POST /v1/chat/completions HTTP/1.1\r\nhost: sim\r\ncontent-length: {}\r\n\r\n", body.len());
    let mut socket = TcpStream::connect(server.addr()).await.unwrap();
    socket.write_all((head + &body).as_bytes()).await.unwrap();
    tokio::spawn(async move { socket.read_to_end(&mut Vec::new()).await })
}

#[tokio::test]
async fn resets_are_resets_on_the_wire() {
    let server = start(slow_config()).await;
    server.faults().set_completions(CompletionsFault::Reset(3));
    let end = long_stream(&server).await.await.unwrap();
    assert_eq!(end.unwrap_err().kind(), ErrorKind::ConnectionReset);

    server.faults().set_completions(CompletionsFault::Ok);
    let stream = long_stream(&server).await;
    stats_when(&server, |stats| stats.running == 1).await;
    server.kill().await;
    assert_eq!(stream.await.unwrap().unwrap_err().kind(), ErrorKind::ConnectionReset);
}
