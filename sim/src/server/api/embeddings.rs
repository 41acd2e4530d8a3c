//! `/v1/embeddings`: a prefill and nothing more.

use serde_json::{Value, json};

use super::super::answer::fnv1a;
use super::super::tokens::prompts;
use super::{ApiError, Dialect, Events, Job, Reply};

pub(in crate::server) struct Embeddings;

impl Dialect for Embeddings {
    fn job(&self, body: &Value) -> Result<Job, ApiError> {
        let prompts = body.get("input").and_then(prompts).ok_or_else(|| ApiError::missing("body.input"))?;
        Ok(Job { prompts, max_tokens: Some(1), stream: false, include_usage: false })
    }

    fn whole(&self, reply: &Reply) -> Value {
        let data = reply.choices.iter().enumerate().map(|(index, choice)| {
            let hash = fnv1a(format!("{}{}", reply.id, choice.prompt_tokens).as_bytes());
            let vector = hash.to_le_bytes().map(|byte| f64::from(byte) / 255.0);
            json!({"index": index, "object": "embedding", "embedding": vector})
        });
        let tokens = reply.prompt_tokens();
        json!({
            "id": format!("embd-{}", reply.id),
            "object": "list",
            "created": reply.created,
            "model": reply.model,
            "data": data.collect::<Value>(),
            "usage": {
                "prompt_tokens": tokens,
                "total_tokens": tokens,
                "completion_tokens": 0,
                "prompt_tokens_details": {"cached_tokens": reply.cached_tokens()},
            },
        })
    }

    fn token(&self, _reply: &Reply, _choice: usize, _text: &str, _out: &mut Events) {}

    fn close(&self, _reply: &Reply, _out: &mut Events) {}
}
