//! Anthropic's `/v1/messages`.

use serde_json::{Value, json};

use super::{ApiError, Dialect, Events, Job, Reply, Tokens, messages};

pub(in crate::server) struct Messages;

impl Dialect for Messages {
    fn job(&self, body: &Value) -> Result<Job, ApiError> {
        let mut tokens = Tokens::default();
        tokens.tools(body);
        if let Some(system) = body.get("system") {
            tokens.mark("system");
            tokens.content(system);
        }
        tokens.messages(messages(body)?);
        tokens.mark("assistant");
        Ok(Job::new(body, vec![tokens], &["max_tokens"]))
    }

    fn whole(&self, reply: &Reply) -> Value {
        json!({
            "id": format!("chatcmpl-{}", reply.id),
            "type": "message",
            "role": "assistant",
            "content": [{"type": "text", "text": reply.text()}],
            "model": reply.model,
            "stop_reason": stop_reason(reply),
            "stop_sequence": null,
            "usage": usage(reply),
        })
    }

    fn open(&self, reply: &Reply, out: &mut Events) {
        let message = json!({
            "id": format!("chatcmpl-{}", reply.id),
            "type": "message",
            "role": "assistant",
            "content": [],
            "model": reply.model,
            "stop_reason": null,
            "stop_sequence": null,
            "usage": {"input_tokens": reply.prompt_tokens(), "output_tokens": 0},
        });
        out.named("message_start", json!({"message": message}));
        out.named("content_block_start", json!({"content_block": {"type": "text", "text": ""}, "index": 0}));
    }

    fn token(&self, _reply: &Reply, _choice: usize, text: &str, out: &mut Events) {
        out.named("content_block_delta", json!({"delta": {"type": "text_delta", "text": text}, "index": 0}));
    }

    fn close(&self, reply: &Reply, out: &mut Events) {
        out.named("content_block_stop", json!({"index": 0}));
        let delta = json!({"stop_reason": stop_reason(reply), "stop_sequence": null});
        out.named("message_delta", json!({"delta": delta, "usage": usage(reply)}));
        out.named("message_stop", json!({}));
    }
}

fn stop_reason(reply: &Reply) -> &'static str {
    if reply.cut { "max_tokens" } else { "end_turn" }
}

/// Anthropic counts cached tokens apart from `input_tokens`.
fn usage(reply: &Reply) -> Value {
    let cached = reply.cached_tokens();
    json!({
        "input_tokens": reply.prompt_tokens() - cached,
        "cache_read_input_tokens": cached,
        "output_tokens": reply.output_tokens(),
    })
}
