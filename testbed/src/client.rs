//! A client that notes when the first token came.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result};
use bytes::{Bytes, BytesMut};
use reqwest::header::{HeaderMap, HeaderValue};
use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::Value;
use tokio::time::Instant;

/// A client of one server or proxy; clones share connections.
#[derive(Clone, Debug)]
pub struct Client {
    http: reqwest::Client,
    base: String,
}

impl Client {
    /// A client that keeps connections open.
    pub fn new(server: SocketAddr) -> Self {
        // Only TLS or a proxy from the environment could make building fail, and there is neither.
        let http = reqwest::Client::builder().no_proxy().build().unwrap_or_default();
        Self { http, base: format!("http://{server}") }
    }

    /// A client that speaks HTTP/2 from the first byte.
    pub fn http2(server: SocketAddr) -> Self {
        let http = reqwest::Client::builder().no_proxy().http2_prior_knowledge().build().unwrap_or_default();
        Self { http, base: format!("http://{server}") }
    }

    /// Begins a request; send it with [`Answer::to`].
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("{}{path}", self.base))
    }

    /// Gets a page.
    pub async fn get(&self, path: &str) -> Result<Answer> {
        Answer::to(self.request(Method::GET, path)).await
    }

    /// Posts JSON.
    pub async fn post(&self, path: &str, body: &Value) -> Result<Answer> {
        Answer::to(self.request(Method::POST, path).json(body)).await
    }
}

/// A whole answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body; of a stream, all events.
    pub body: Bytes,
    /// From sending the request to the first byte of the body: for a stream, the time to the first token.
    pub first: Duration,
    /// From sending the request to the last byte.
    pub total: Duration,
}

impl Answer {
    /// Sends a request and reads the whole answer. An error if the connection broke or the body was cut off.
    pub async fn to(request: RequestBuilder) -> Result<Self> {
        let start = Instant::now();
        let mut response = request.send().await?;
        let (status, headers) = (response.status(), response.headers().clone());
        let (mut body, mut first) = (BytesMut::new(), None);
        while let Some(chunk) = response.chunk().await? {
            first.get_or_insert_with(|| start.elapsed());
            body.extend_from_slice(&chunk);
        }
        let total = start.elapsed();
        Ok(Self { status, headers, body: body.freeze(), first: first.unwrap_or(total), total })
    }

    /// A header's text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(HeaderValue::to_str)?.ok()
    }

    /// The simulated server that answered.
    pub fn served_by(&self) -> Result<SocketAddr> {
        let name = self.header("x-served-by").with_context(|| format!("no server answered but {self:?}"))?;
        Ok(name.parse()?)
    }

    /// The body of an answer that is not a stream.
    pub fn json(&self) -> Result<Value> {
        serde_json::from_slice(&self.body).with_context(|| format!("not JSON: {self:?}"))
    }

    /// The data of each event of a stream, without the closing `[DONE]`.
    pub fn events(&self) -> Result<Vec<Value>> {
        let text = std::str::from_utf8(&self.body)?;
        let data = text.lines().filter_map(|line| line.strip_prefix("data: ")).filter(|data| *data != "[DONE]");
        data.map(|data| serde_json::from_str(data).with_context(|| format!("not JSON: {data}"))).collect()
    }
}
