//! Model servers as the scraper sees them.

use std::fmt::Write;

use super::headers::Headers;
use super::host::Host;

/// Milliseconds from a scrape to its answer.
const LATENCY: u64 = 5;

/// What a scrape of a server brings.
#[derive(Clone, Debug)]
pub enum Server {
    /// 200 with this text and its length.
    Says(Vec<u8>),
    /// Any answer.
    Answers(u16, Vec<(&'static str, String)>, Vec<u8>),
    /// No connection.
    Refuses,
    /// No answer; the proxy gives up at the deadline.
    Hangs,
    /// A callback without any header, as after a reset.
    SaysNothing,
    /// No callback, not even at the deadline.
    IsForgotten,
}

/// What the callback of a call finds.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    pub headers: Headers,
    pub body: Vec<u8>,
}

impl Server {
    /// A vLLM server with these signals.
    pub fn vllm(waiting: u32, running: u32, kv_usage: f64) -> Self {
        let mut text = String::new();
        for (name, value) in [
            ("num_requests_running", f64::from(running)),
            ("num_requests_waiting", f64::from(waiting)),
            ("kv_cache_usage_perc", kv_usage),
        ] {
            writeln!(text, "# TYPE vllm:{name} gauge").unwrap();
            writeln!(text, "vllm:{name}{{engine=\"0\",model_name=\"m\"}} {value:?}").unwrap();
        }
        let labels = "block_size=\"16\",engine=\"0\",num_gpu_blocks=\"100000\"";
        writeln!(text, "# TYPE vllm:cache_config_info gauge").unwrap();
        writeln!(text, "vllm:cache_config_info{{{labels}}} 1.0").unwrap();
        Self::Says(text.into_bytes())
    }

    /// The text of a server that answers with one.
    pub fn text(&self) -> &[u8] {
        match self {
            Self::Says(text) => text,
            other => panic!("{other:?} has no text"),
        }
    }

    /// The answer and after how many milliseconds it comes.
    pub fn scraped(&self, host: Host, timeout: u64) -> Option<(u64, Answer)> {
        let made_up = |status: Option<u16>, body: &str| {
            let body = body.as_bytes();
            status.map_or_else(Answer::default, |status| answer(status, &[("content-type", "text/plain".into())], body))
        };
        Some(match self {
            Self::Says(text) => {
                let length = text.len().to_string();
                (LATENCY, answer(200, &[("content-type", "text/plain".into()), ("content-length", length)], text))
            }
            Self::Answers(status, headers, body) => (LATENCY, answer(*status, headers, body)),
            Self::Refuses => (1, made_up(host.refused, "upstream connect error: remote connection failure")),
            Self::Hangs => (timeout, made_up(host.timed_out, "upstream request timeout")),
            Self::SaysNothing => (LATENCY, Answer::default()),
            Self::IsForgotten => return None,
        })
    }
}

fn answer(status: u16, headers: &[(&str, String)], body: &[u8]) -> Answer {
    let mut all = Headers::default();
    all.add(":status", status.to_string());
    headers.iter().for_each(|(name, value)| all.add(name, value));
    Answer { headers: all, body: body.to_vec() }
}
