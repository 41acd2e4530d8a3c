//! Model servers that answer at once: what remains is the way there and back.

use std::convert::Infallible;
use std::net::SocketAddr;

use anyhow::Result;
use bytes::Bytes;
use clap::Args;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::MetricsText;
use crate::child::{Child, announce};

const ANSWER: &[u8] = br#"{"id":"chat-1","object":"chat.completion","created":1796000000,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Good bye."},"finish_reason":"stop"}],"usage":{"prompt_tokens":1000,"completion_tokens":3,"total_tokens":1003}}"#;

/// Many servers in one process.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Upstream {
    /// How many, each with a port of its own.
    #[arg(long)]
    pub(crate) servers: usize,
    /// What they answer to GET /metrics.
    #[arg(long)]
    pub(crate) metrics: MetricsText,
}

impl Upstream {
    /// Starts them in a child process.
    pub(crate) fn start(self) -> Result<Child> {
        Child::start(&["upstream", "--servers", &self.servers.to_string(), "--metrics", self.metrics.name()])
    }

    /// The child's side.
    pub(crate) async fn serve(self) -> Result<()> {
        let mut listeners = Vec::new();
        for _ in 0..self.servers {
            listeners.push(TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).await?);
        }
        let addresses: Vec<SocketAddr> = listeners.iter().map(TcpListener::local_addr).collect::<Result<_, _>>()?;
        let metrics = Bytes::from(self.metrics.bytes());
        let mut serving = JoinSet::new();
        for listener in listeners {
            serving.spawn(accept(listener, metrics.clone()));
        }
        announce(&addresses)?;
        while let Some(ended) = serving.join_next().await {
            ended??;
        }
        Ok(())
    }
}

async fn accept(listener: TcpListener, metrics: Bytes) -> Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(converse(stream, metrics.clone()));
    }
}

async fn converse(stream: TcpStream, metrics: Bytes) -> hyper::Result<()> {
    let service = service_fn(|request| answer(request, metrics.clone()));
    http1::Builder::new().serve_connection(TokioIo::new(stream), service).await
}

async fn answer(request: Request<Incoming>, metrics: Bytes) -> Result<Response<Full<Bytes>>, Infallible> {
    let (kind, body) = match request.uri().path() {
        "/metrics" => ("text/plain; version=0.0.4; charset=utf-8", metrics),
        _ => ("application/json", Bytes::from_static(ANSWER)),
    };
    // A server that answers before it has read the request would not be kept.
    let mut asked = request.into_body();
    while let Some(Ok(_)) = asked.frame().await {}
    let mut response = Response::new(Full::new(body));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    Ok(response)
}
