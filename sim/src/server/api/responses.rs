//! OpenAI's `/v1/responses`.

use serde_json::{Value, json};

use super::{ApiError, Dialect, Events, Job, Reply, Tokens};

pub(in crate::server) struct Responses;

impl Dialect for Responses {
    fn job(&self, body: &Value) -> Result<Job, ApiError> {
        let mut tokens = Tokens::default();
        tokens.tools(body);
        if let Some(instructions) = body.get("instructions").filter(|text| !text.is_null()) {
            tokens.mark("system");
            tokens.content(instructions);
        }
        match body.get("input") {
            Some(Value::Array(items)) => tokens.messages(items),
            Some(Value::String(text)) => {
                tokens.mark("user");
                tokens.text(text);
            }
            _ => return Err(ApiError::missing("body.input")),
        }
        tokens.mark("assistant");
        Ok(Job::new(body, vec![tokens], &["max_output_tokens"]))
    }

    fn whole(&self, reply: &Reply) -> Value {
        response(reply, if reply.cut { "incomplete" } else { "completed" })
    }

    fn open(&self, reply: &Reply, out: &mut Events) {
        let response = response(reply, "in_progress");
        out.named("response.created", json!({"response": response, "sequence_number": 0}));
        out.named("response.in_progress", json!({"response": response, "sequence_number": 1}));
        let item = json!({"id": item_id(reply), "content": [], "role": "assistant", "status": "in_progress", "type": "message"});
        out.named("response.output_item.added", json!({"item": item, "output_index": 0, "sequence_number": 2}));
        out.named("response.content_part.added", part(reply, "", 3));
    }

    fn token(&self, reply: &Reply, _choice: usize, text: &str, out: &mut Events) {
        let data = json!({
            "content_index": 0,
            "delta": text,
            "item_id": item_id(reply),
            "logprobs": [],
            "output_index": 0,
            "sequence_number": reply.output_tokens() + 3,
        });
        out.named("response.output_text.delta", data);
    }

    fn close(&self, reply: &Reply, out: &mut Events) {
        let next = reply.output_tokens() + 4;
        let text = json!({
            "content_index": 0,
            "item_id": item_id(reply),
            "output_index": 0,
            "sequence_number": next,
            "text": reply.text(),
        });
        out.named("response.output_text.done", text);
        out.named("response.content_part.done", part(reply, reply.text(), next + 1));
        let item = json!({"item": message(reply), "output_index": 0, "sequence_number": next + 2});
        out.named("response.output_item.done", item);
        out.named("response.completed", json!({"response": self.whole(reply), "sequence_number": next + 3}));
    }
}

fn response(reply: &Reply, status: &str) -> Value {
    let over = status != "in_progress";
    let usage = json!({
        "input_tokens": reply.prompt_tokens(),
        "input_tokens_details": {"cached_tokens": reply.cached_tokens()},
        "output_tokens": reply.output_tokens(),
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": reply.prompt_tokens() + reply.output_tokens(),
    });
    json!({
        "id": format!("resp_{}", reply.id),
        "created_at": reply.created,
        "incomplete_details": (over && reply.cut).then(|| json!({"reason": "max_output_tokens"})),
        "model": reply.model,
        "object": "response",
        "output": if over { json!([message(reply)]) } else { json!([]) },
        "parallel_tool_calls": true,
        "max_output_tokens": reply.max_tokens,
        "status": status,
        "usage": over.then_some(usage),
    })
}

fn message(reply: &Reply) -> Value {
    let content = json!({"annotations": [], "text": reply.text(), "type": "output_text", "logprobs": null});
    json!({"id": item_id(reply), "content": [content], "role": "assistant", "status": "completed", "type": "message"})
}

fn part(reply: &Reply, text: &str, sequence_number: u32) -> Value {
    json!({
        "content_index": 0,
        "item_id": item_id(reply),
        "output_index": 0,
        "part": {"annotations": [], "text": text, "type": "output_text", "logprobs": []},
        "sequence_number": sequence_number,
    })
}

fn item_id(reply: &Reply) -> String {
    format!("msg_{}", reply.id)
}
