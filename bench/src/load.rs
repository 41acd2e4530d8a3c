//! The load: a fixed number of requests over kept-alive connections, each sent when the one before it on its connection
//! was answered.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::body::Chat;
use crate::statistics::quantile;

/// What is sent.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// `GET /v1/models`.
    Get,
    /// A chat by POST.
    Post(Chat),
}

/// A client's connections to one listener.
#[derive(Debug)]
pub(crate) struct Client {
    address: SocketAddr,
    connections: Vec<SendRequest<Full<Bytes>>>,
}

/// What a batch of requests came to.
#[derive(Debug)]
pub(crate) struct Batch {
    /// From a request's first byte to its answer's last, in microseconds, ascending.
    latencies: Vec<f64>,
    /// From the first request to the last answer.
    pub(crate) took: Duration,
}

/// Numbers requests, so that no two of a run have the same prompt.
static NUMBER: AtomicU64 = AtomicU64::new(0);

impl Client {
    /// A client with this many connections.
    pub(crate) async fn connect(address: SocketAddr, connections: usize) -> Result<Self> {
        let mut client = Self { address, connections: Vec::new() };
        for _ in 0..connections {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
            tokio::spawn(connection);
            client.connections.push(sender);
        }
        Ok(client)
    }

    /// Sends `requests` over `concurrency` of the connections. An error if one of them is not answered with 200.
    pub(crate) async fn run(&mut self, kind: &Kind, concurrency: usize, requests: usize) -> Result<Batch> {
        let left = Arc::new(AtomicU64::new(requests as u64));
        let mut running = JoinSet::new();
        let begin = Instant::now();
        for sender in self.connections.drain(..concurrency.min(self.connections.len())) {
            running.spawn(drive(sender, self.address, kind.clone(), Arc::clone(&left)));
        }
        let mut latencies = Vec::with_capacity(requests);
        while let Some(ended) = running.join_next().await {
            let (sender, measured) = ended??;
            self.connections.push(sender);
            latencies.extend(measured);
        }
        let took = begin.elapsed();
        latencies.sort_by(f64::total_cmp);
        Ok(Batch { latencies, took })
    }
}

impl Batch {
    /// The latency below which this share of the requests was, in microseconds.
    pub(crate) fn latency(&self, share: f64) -> f64 {
        quantile(&self.latencies, share)
    }

    /// Requests in it.
    pub(crate) fn requests(&self) -> f64 {
        self.latencies.len() as f64
    }
}

async fn drive(
    mut sender: SendRequest<Full<Bytes>>,
    address: SocketAddr,
    kind: Kind,
    left: Arc<AtomicU64>,
) -> Result<(SendRequest<Full<Bytes>>, Vec<f64>)> {
    let mut latencies = Vec::new();
    while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
        let request = kind.request(address)?;
        let begin = Instant::now();
        let response = sender.send_request(request).await.context("the connection broke")?;
        let (head, body) = response.into_parts();
        let body = body.collect().await?.to_bytes();
        latencies.push(begin.elapsed().as_secs_f64() * 1e6);
        ensure!(head.status == StatusCode::OK, "{}: {}", head.status, String::from_utf8_lossy(&body));
    }
    Ok((sender, latencies))
}

impl Kind {
    fn request(&self, address: SocketAddr) -> Result<Request<Full<Bytes>>> {
        let request = Request::builder().header("host", address.to_string());
        Ok(match self {
            Self::Get => request.method(Method::GET).uri("/v1/models").body(Full::default())?,
            Self::Post(chat) => {
                let body = chat.numbered(NUMBER.fetch_add(1, Ordering::Relaxed));
                let request = request.method(Method::POST).uri("/v1/chat/completions");
                request.header("content-type", "application/json").body(Full::new(body))?
            }
        })
    }
}
