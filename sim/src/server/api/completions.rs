//! `/v1/completions`: text or token ids, one prompt or several.

use serde_json::{Value, json};

use super::super::tokens::prompts;
use super::{ApiError, Dialect, Events, Job, Reply};

pub(in crate::server) struct Completions;

/// OpenAI's default.
const MAX_TOKENS: u64 = 16;

impl Dialect for Completions {
    fn job(&self, body: &Value) -> Result<Job, ApiError> {
        let prompts = body.get("prompt").and_then(prompts).ok_or_else(|| ApiError::missing("body.prompt"))?;
        let mut job = Job::new(body, prompts, &["max_tokens"]);
        job.max_tokens.get_or_insert(MAX_TOKENS);
        Ok(job)
    }

    fn whole(&self, reply: &Reply) -> Value {
        let choices = reply.choices.iter().enumerate().map(|(index, choice)| {
            json!({
                "index": index,
                "text": choice.answer.text(),
                "logprobs": null,
                "finish_reason": reply.finish_reason(),
                "stop_reason": null,
            })
        });
        json!({
            "id": format!("cmpl-{}", reply.id),
            "object": "text_completion",
            "created": reply.created,
            "model": reply.model,
            "choices": choices.collect::<Value>(),
            "service_tier": null,
            "system_fingerprint": null,
            "usage": reply.usage(),
            "kv_transfer_params": null,
        })
    }

    fn token(&self, reply: &Reply, choice: usize, text: &str, out: &mut Events) {
        let finish = reply.is_last(choice).then(|| reply.finish_reason());
        let choice =
            json!({"index": choice, "text": text, "logprobs": null, "finish_reason": finish, "stop_reason": null});
        out.data(&chunk(reply, json!([choice])));
    }

    fn close(&self, reply: &Reply, out: &mut Events) {
        if reply.include_usage {
            let mut last = chunk(reply, json!([]));
            if let Some(fields) = last.as_object_mut() {
                fields.insert("usage".to_owned(), reply.usage());
            }
            out.data(&last);
        }
        out.done();
    }
}

fn chunk(reply: &Reply, choices: Value) -> Value {
    json!({
        "id": format!("cmpl-{}", reply.id),
        "object": "text_completion",
        "created": reply.created,
        "model": reply.model,
        "choices": choices,
    })
}
