//! One POST to the API, from its body to its last byte.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::Request;
use axum::http::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde_json::Value;

use super::answer::{Answer, fnv1a};
use super::api::{Choice, Dialect, Events, Job, Reply};
use super::app::App;
use super::error::ApiError;
use super::faults::CompletionsFault;
use super::listen::Connection;
use super::live::{Generation, unix_time};
use super::models::Model;
use crate::engine::Prompt;

/// Largest body taken, in bytes.
const MAX_BODY: usize = 64 << 20;

/// Answers a call, whatever is wrong with it.
pub(super) async fn answer(app: Arc<App>, dialect: &'static dyn Dialect, request: Request) -> Response {
    let request_id = request.headers().get(X_REQUEST_ID).cloned();
    let connection = request.extensions().get::<Connection>().cloned().unwrap_or_default();
    let Ok(body) = to_bytes(request.into_body(), MAX_BODY).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let call = Call { body, request_id, connection };
    let mut response = match call.begin(&app, dialect).await {
        Ok(response) => response,
        Err(error) => error.into_response(),
    };
    call.mark(response.headers_mut());
    response
}

const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const X_BODY_BYTES: HeaderName = HeaderName::from_static("x-body-bytes");
const X_BODY_FNV: HeaderName = HeaderName::from_static("x-body-fnv");

struct Call {
    body: Bytes,
    request_id: Option<HeaderValue>,
    connection: Connection,
}

impl Call {
    async fn begin(&self, app: &Arc<App>, dialect: &'static dyn Dialect) -> Result<Response, ApiError> {
        let reset_after = match app.faults.get().completions {
            CompletionsFault::Ok => None,
            CompletionsFault::Reset(tokens) => Some(tokens),
            CompletionsFault::Status(code) => return Ok(refusal(code)),
            CompletionsFault::Hang => {
                app.stopping().await;
                return Err(ApiError::fault(StatusCode::SERVICE_UNAVAILABLE));
            }
        };
        let body: Value = serde_json::from_slice(&self.body).map_err(|error| ApiError::bad_json(&error))?;
        let model = app.models.resolve(body.get("model").and_then(Value::as_str))?;
        let job = dialect.job(&body)?;
        let (reply, generation) = self.submit(app, &job, model)?;
        let call = Stream { dialect, reply, generation, opened: false, sent: 0, reset_after };
        if job.stream { Ok(call.events(self.connection.clone())) } else { Ok(call.whole(&self.connection).await) }
    }

    fn submit(&self, app: &App, job: &Job, model: Model<'_>) -> Result<(Reply, Generation), ApiError> {
        let context = app.context_len;
        let longest = job.prompts.iter().map(|tokens| tokens.0.len()).max().unwrap_or(0);
        let asked = job.max_tokens.unwrap_or_else(|| u64::from(app.default_max_tokens));
        let room = u64::from(context).saturating_sub(longest as u64);
        if job.max_tokens.is_some() && asked > room && room > 0 {
            return Err(ApiError::max_tokens(asked, context));
        }
        let max_tokens = u32::try_from(asked.clamp(1, room.max(1))).unwrap_or(u32::MAX);
        let request_id = self.request_id.as_ref().map_or("", |id| id.to_str().unwrap_or("?"));
        let hash = fnv1a(&self.body);
        let mut prompts = Vec::with_capacity(job.prompts.len());
        let mut choices = Vec::with_capacity(job.prompts.len());
        for (index, tokens) in job.prompts.iter().enumerate() {
            let answer = Answer::new(request_id, self.body.len(), hash, index, max_tokens);
            let mut output = super::tokens::Tokens::default();
            output.text(answer.text());
            let prompt = Prompt::from_tokens(&tokens.0, &output.0, app.block_size, model.salt);
            choices.push(Choice { prompt_tokens: prompt.tokens, cached_tokens: 0, answer, done: 0 });
            prompts.push(prompt);
        }
        let generation = app.engine.submit(prompts, max_tokens, model.adapter);
        let generation = generation.map_err(|rejected| ApiError::rejected(rejected, longest, context))?;
        let id = if request_id.is_empty() { format!("{:016x}", app.next_id()) } else { request_id.to_owned() };
        let reply = Reply {
            id,
            created: unix_time() as u64,
            model: model.name.to_owned(),
            choices,
            max_tokens,
            cut: job.max_tokens.is_some(),
            include_usage: job.include_usage,
        };
        Ok((reply, generation))
    }

    /// Lets a client prove which request this answers and that it came in whole.
    fn mark(&self, headers: &mut HeaderMap) {
        if let Some(id) = &self.request_id {
            headers.insert(X_REQUEST_ID, id.clone());
        }
        headers.insert(X_BODY_BYTES, self.body.len().into());
        if let Ok(hash) = HeaderValue::from_str(&format!("{:016x}", fnv1a(&self.body))) {
            headers.insert(X_BODY_FNV, hash);
        }
    }
}

fn refusal(code: u16) -> Response {
    let status = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = ApiError::fault(status).into_response();
    if matches!(code, 429 | 503) {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

/// The tokens of a call on their way out.
struct Stream {
    dialect: &'static dyn Dialect,
    reply: Reply,
    generation: Generation,
    opened: bool,
    sent: u32,
    reset_after: Option<u32>,
}

impl Stream {
    async fn whole(mut self, connection: &Connection) -> Response {
        while let Some(token) = self.generation.next().await {
            if self.count(token.prompt, token.cached_tokens) {
                connection.reset_when_dropped();
                // Hyper closes the connection on a body that fails before its first byte.
                return Body::from_stream(stream::iter([Err::<Bytes, _>(io::Error::other("reset"))])).into_response();
            }
        }
        Json(self.dialect.whole(&self.reply)).into_response()
    }

    fn events(self, connection: Connection) -> Response {
        let body = stream::unfold(Some(self), move |state| {
            let connection = connection.clone();
            async move {
                let mut call = state?;
                match call.next_events().await {
                    Next::Events(events) => Some((Ok(Bytes::from(events.0)), Some(call))),
                    Next::Last(events) => Some((Ok(Bytes::from(events.0)), None)),
                    Next::Reset => {
                        connection.reset_when_dropped();
                        Some((Err(io::Error::other("reset")), None))
                    }
                }
            }
        });
        let content_type = HeaderValue::from_static("text/event-stream; charset=utf-8");
        ([(CONTENT_TYPE, content_type)], Body::from_stream(body)).into_response()
    }

    async fn next_events(&mut self) -> Next {
        let mut events = Events::default();
        let Some(token) = self.generation.next().await else {
            self.dialect.close(&self.reply, &mut events);
            return Next::Last(events);
        };
        if self.count(token.prompt, token.cached_tokens) {
            // What was written so far should be on its way before the reset overtakes it.
            tokio::time::sleep(Duration::from_millis(5)).await;
            return Next::Reset;
        }
        if !std::mem::replace(&mut self.opened, true) {
            self.dialect.open(&self.reply, &mut events);
        }
        let Some(choice) = self.reply.choices.get(token.prompt) else { return Next::Events(events) };
        let text = choice.answer.token((choice.done as usize).saturating_sub(1));
        self.dialect.token(&self.reply, token.prompt, text, &mut events);
        Next::Events(events)
    }

    /// Counts a token; true if the connection is to be reset instead of sending it.
    fn count(&mut self, prompt: usize, cached_tokens: Option<u32>) -> bool {
        if let Some(choice) = self.reply.choices.get_mut(prompt) {
            choice.done += 1;
            choice.cached_tokens = cached_tokens.unwrap_or(choice.cached_tokens);
        }
        self.sent += 1;
        self.reset_after.is_some_and(|after| self.sent > after)
    }
}

enum Next {
    Events(Events),
    Last(Events),
    Reset,
}
