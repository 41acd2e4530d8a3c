//! `/v1/chat/completions`.

use serde_json::{Value, json};

use super::{ApiError, Dialect, Events, Job, Reply, Tokens, messages};

pub(in crate::server) struct Chat;

impl Dialect for Chat {
    fn job(&self, body: &Value) -> Result<Job, ApiError> {
        let mut tokens = Tokens::default();
        tokens.tools(body);
        tokens.messages(messages(body)?);
        tokens.mark("assistant");
        Ok(Job::new(body, vec![tokens], &["max_completion_tokens", "max_tokens"]))
    }

    fn whole(&self, reply: &Reply) -> Value {
        json!({
            "id": format!("chatcmpl-{}", reply.id),
            "object": "chat.completion",
            "created": reply.created,
            "model": reply.model,
            "choices": [{
                "index": 0,
                "message": {"role": "assistant", "content": reply.text(), "refusal": null},
                "logprobs": null,
                "finish_reason": reply.finish_reason(),
                "stop_reason": null,
            }],
            "service_tier": null,
            "system_fingerprint": null,
            "usage": reply.usage(),
            "prompt_logprobs": null,
            "kv_transfer_params": null,
        })
    }

    fn open(&self, reply: &Reply, out: &mut Events) {
        out.data(&chunk(reply, json!({"role": "assistant", "content": ""}), Value::Null));
    }

    fn token(&self, reply: &Reply, choice: usize, text: &str, out: &mut Events) {
        let finish = if reply.is_last(choice) { reply.finish_reason().into() } else { Value::Null };
        out.data(&chunk(reply, json!({"content": text}), finish));
    }

    fn close(&self, reply: &Reply, out: &mut Events) {
        if reply.include_usage {
            let mut last = chunk(reply, Value::Null, Value::Null);
            if let Some(fields) = last.as_object_mut() {
                fields.insert("choices".to_owned(), json!([]));
                fields.insert("usage".to_owned(), reply.usage());
            }
            out.data(&last);
        }
        out.done();
    }
}

fn chunk(reply: &Reply, delta: Value, finish: Value) -> Value {
    json!({
        "id": format!("chatcmpl-{}", reply.id),
        "object": "chat.completion.chunk",
        "created": reply.created,
        "model": reply.model,
        "choices": [{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}],
    })
}
