//! SGLang's `/generate`: each event carries the whole text so far.

use serde_json::{Value, json};

use super::super::tokens::prompts;
use super::{ApiError, Dialect, Events, Job, Reply};

pub(in crate::server) struct Generate;

/// SGLang's default.
const MAX_TOKENS: u64 = 128;

impl Dialect for Generate {
    fn job(&self, body: &Value) -> Result<Job, ApiError> {
        let prompt = body.get("text").or_else(|| body.get("input_ids"));
        let prompts = prompt.and_then(prompts).ok_or_else(|| ApiError::missing("body.text"))?;
        let mut job = Job::new(body, prompts, &[]);
        let parameters = body.get("sampling_params");
        job.max_tokens = Some(parameters.and_then(|p| p.get("max_new_tokens")?.as_u64()).unwrap_or(MAX_TOKENS));
        Ok(job)
    }

    fn whole(&self, reply: &Reply) -> Value {
        let mut answers = (0..reply.choices.len()).map(|index| answer(reply, index));
        if reply.choices.len() == 1 { answers.next().unwrap_or_default() } else { answers.collect() }
    }

    fn token(&self, reply: &Reply, choice: usize, _text: &str, out: &mut Events) {
        out.data(&answer(reply, choice));
    }

    fn close(&self, _reply: &Reply, out: &mut Events) {
        out.done();
    }
}

fn answer(reply: &Reply, index: usize) -> Value {
    let Some(choice) = reply.choices.get(index) else { return Value::Null };
    let finish = reply.is_last(index).then(|| json!({"type": reply.finish_reason(), "length": choice.done}));
    json!({
        "text": choice.answer.first(choice.done as usize),
        "index": index,
        "meta_info": {
            "id": reply.id,
            "finish_reason": finish,
            "prompt_tokens": choice.prompt_tokens,
            "completion_tokens": choice.done,
            "cached_tokens": choice.cached_tokens,
        },
    })
}
