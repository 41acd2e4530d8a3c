//! The load: chats of several turns, each beginning with one of a few long system prompts.
//!
//! Every chat is drawn from the seed before the first request is sent, and runs to its end, so that two runs see the
//! same work. A chat's next turn waits for its last answer and a moment of thought.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testbed::Client;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

/// Characters that the simulated servers count as one token.
const CHARS_PER_TOKEN: usize = 4;

/// How much there is to do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Different system prompts.
    pub(crate) prompts: usize,
    /// Tokens of each.
    pub(crate) prompt_tokens: usize,
    /// Chats, each with one of the system prompts.
    pub(crate) chats: usize,
    /// Questions in a chat.
    pub(crate) turns: usize,
    /// Tokens of a question, on average.
    pub(crate) question_tokens: usize,
    /// Tokens of an answer, on average.
    pub(crate) answer_tokens: usize,
    /// Chats that begin in a second, on average.
    pub(crate) chats_per_second: f64,
    /// Mean pause between an answer and the next question.
    pub(crate) thought: Duration,
}

/// All chats, ready to be sent any number of times.
pub(crate) struct Load {
    chats: Vec<Chat>,
}

struct Chat {
    start: Duration,
    system: Arc<str>,
    turns: Vec<Turn>,
}

struct Turn {
    question: String,
    answer_tokens: usize,
    thought: Duration,
}

/// What came of one request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    /// Time to first token.
    pub(crate) ttft: Duration,
    pub(crate) prompt_tokens: u64,
    /// Prompt tokens that the server had in its cache.
    pub(crate) cached_tokens: u64,
    pub(crate) server: SocketAddr,
}

impl Load {
    /// The load of this shape and seed.
    pub(crate) fn new(shape: &Shape, seed: u64) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let systems: Vec<Arc<str>> = (0..shape.prompts).map(|_| text(&mut rng, shape.prompt_tokens).into()).collect();
        let mut start = Duration::ZERO;
        let mut chat = |_| {
            start += exponential(&mut rng, Duration::from_secs_f64(1.0 / shape.chats_per_second));
            let system = rng.choice(&systems).cloned().unwrap_or_default();
            let turns = (0..shape.turns).map(|_| Turn {
                question: around(&mut rng, shape.question_tokens),
                answer_tokens: rng.usize(shape.answer_tokens / 2..=shape.answer_tokens * 3 / 2),
                thought: exponential(&mut rng, shape.thought),
            });
            let turns = turns.collect();
            Chat { start, system, turns }
        };
        Self { chats: (0..shape.chats).map(&mut chat).collect() }
    }

    /// Requests in it.
    pub(crate) fn requests(&self) -> usize {
        self.chats.iter().map(|chat| chat.turns.len()).sum()
    }

    /// Sends everything; each request's sample goes to `samples` as soon as it is there.
    pub(crate) async fn run(self: Arc<Self>, client: Client, samples: UnboundedSender<Sample>) -> Result<()> {
        let begin = Instant::now();
        let mut running = JoinSet::new();
        for at in 0..self.chats.len() {
            let (load, client, samples) = (Arc::clone(&self), client.clone(), samples.clone());
            running.spawn(async move {
                let Some(chat) = load.chats.get(at) else { return Ok(()) };
                sleep_until(begin + chat.start).await;
                chat.run(&client, &samples).await
            });
        }
        while let Some(ended) = running.join_next().await {
            ended??;
        }
        Ok(())
    }
}

impl Chat {
    async fn run(&self, client: &Client, samples: &UnboundedSender<Sample>) -> Result<()> {
        let mut messages = vec![json!({ "role": "system", "content": &*self.system })];
        for turn in &self.turns {
            messages.push(json!({ "role": "user", "content": turn.question }));
            let (sample, text) = ask(client, &messages, turn.answer_tokens).await?;
            // Nobody listens any more if another chat has failed.
            let _ = samples.send(sample);
            messages.push(json!({ "role": "assistant", "content": text }));
            sleep(turn.thought).await;
        }
        Ok(())
    }
}

async fn ask(client: &Client, messages: &[Value], max_tokens: usize) -> Result<(Sample, String)> {
    let body = json!({
        "model": "sim",
        "messages": messages,
        "max_tokens": max_tokens,
        "stream": true,
        "stream_options": { "include_usage": true },
    });
    let answer = client.post("/v1/chat/completions", &body).await?;
    ensure!(answer.status.is_success(), "{}: {:?}", answer.status, answer.body);
    let events = answer.events()?;
    let text = events.iter().filter_map(|event| event.pointer("/choices/0/delta/content")?.as_str()).collect();
    let usage = events.last().and_then(|event| event.get("usage")).context("no usage at the end")?;
    let count = |pointer: &str| usage.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
    let sample = Sample {
        ttft: answer.first,
        prompt_tokens: count("/prompt_tokens"),
        cached_tokens: count("/prompt_tokens_details/cached_tokens"),
        server: answer.served_by()?,
    };
    Ok((sample, text))
}

/// A text of half to one and a half times as many tokens.
fn around(rng: &mut fastrand::Rng, tokens: usize) -> String {
    let tokens = rng.usize(tokens / 2..=tokens * 3 / 2);
    text(rng, tokens)
}

fn text(rng: &mut fastrand::Rng, tokens: usize) -> String {
    let mut word = || (1..CHARS_PER_TOKEN).map(|_| rng.lowercase()).chain([' ']).collect::<String>();
    (0..tokens).map(|_| word()).collect()
}

/// Gaps of a Poisson process.
fn exponential(rng: &mut fastrand::Rng, mean: Duration) -> Duration {
    mean.mul_f64(-(1.0 - rng.f64()).ln())
}
