//! Simulated model servers: an engine model in virtual time ([`engine`]), an HTTP server around one ([`server`]), and
//! replays of traces over a fleet of them ([`replay`]).
//!
//! # What is modelled
//!
//! - **The step loop** of a vLLM-like engine: a token budget, running requests first, the queue first come first
//!   served, prompts in chunks. One long prompt holds up everybody; that is what a good picker steers around.
//! - **Time** as fixed plus linear terms in prompt tokens, decoding requests, context tokens and attended pairs
//!   ([`engine::StepTime`]). `tests/engine/calibration.rs` replays published runs of a real vLLM: the running, waiting
//!   and cache curves of an RTX 4090 whose cache overflows differ by 5, 2 and 2 % of their mean, with two of the
//!   constants fitted to that run; by 12, 8 and 6 % with none fitted; running and waiting of an RTX PRO 6000 whose
//!   batch is full by 4 and 17 %, none fitted.
//! - **The KV cache**: paged, reference-counted, with a prefix cache per model and adapter, least recently used out
//!   first and a prompt's tail before its head; admission that waits for blocks; preemption by recomputation.
//! - **LoRA slots**: a request whose adapter finds no slot waits and lets others pass; loading takes time.
//! - **Late metrics**: gauges move at step ends only, and an arrival shows one step later, as measured on a real vLLM.
//! - **The wire**: six API paths whole and streaming, errors, model lists, metrics pages of eight engines, and on
//!   request what goes wrong in the field ([`server::FaultSet`]).
//!
//! # What is not
//!
//! - **Text.** A token is four characters (or an id given as a number); answers say whom they answer and then count.
//!   They are as long as `max_tokens` says, so stop strings, tool calls and structured output do nothing.
//! - **Scheduling other than first come first served**: no priorities, no data-parallel ranks, no prefill/decode
//!   split, no speculative decoding, no sliding windows, no offloading of the cache.
//! - **Noise.** A step takes what its work says; the host's CPU, network and tokenizer take nothing.
//! - **Engines' differences.** SGLang, TensorRT-LLM and the others differ in their metrics page only; the engine
//!   behind each is the same.
//! - **Of the metrics**, only what the engine has: the token-interval and per-step histograms stay empty.

pub mod engine;
mod metrics;
pub mod replay;
pub mod server;

pub use metrics::Flavor;
