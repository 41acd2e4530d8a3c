//! What it costs to send a request to an endpoint, in seconds.
//!
//! The marginal cost of a request is the time that passes because it goes there: the time it waits and works itself, and
//! the time by which it holds up the streams that are there already. The endpoint where this is least is the best for all
//! requests together. Everything is in one unit, so a queue, a cached prefix and a full batch can be weighed against each
//! other without weights that somebody has to find, and each part can be shown to an operator.
//!
//! # The rule
//!
//! ```text
//! cost  = W·(1 + mu·P) + alpha·P + lambda·n·P + theta·(Down + Dext) + A                                    seconds
//!
//! P     = s·(t0/2 + a·u + q·u·(h + u/2))     prefill: reading the `u` tokens of the prompt that are not cached
//! W     = max(clock + foreign, memory)       wait: until the engine begins with this request
//! clock = seconds of prefill sent here and not yet answered by a first token, less the time since
//! foreign = f·s·P(avg)                       for the `f` requests others have in the engine's queue
//! memory  = Down·min(1, max(0, M + u + O - 0.98·C) / M)
//!                                            until enough requests have ended for this one's tokens to fit
//! Down  = O·d·(t0 + a·n + k·KV)              slowdown of me: my `O` tokens, one per step of the engine
//! Dext  = 0.5·O·e·(a + k·(N + O/2))·n_dec    slowdown of others: what I add to each step of the `n_dec` streams
//! A     = 0.05 or 0                          adapter: loading it, where another endpoint runs it and this one does not
//! ```
//!
//! Of the request ([`Work`]): `N` tokens of prompt, `h` of them cached, `u = N - h`, and `O` tokens of output. Of the
//! endpoint ([`Load`]): `n` requests, `n_dec` of them past their first token, `KV` tokens that each step reads for them, `M`
//! tokens in memory, less than `KV` where prompts share a prefix, and room for `C`. Of the engine ([`Constants`]): `t0`
//! seconds a step takes, `a` more per token, `q` per pair of tokens that attend to each other, `k` per token of context
//! read. `s`, `d` and `e` say how many times slower than that this endpoint is ([`Speed`], learned by
//! [`Learner`](crate::learned::Learner); 1 for one that nobody has watched): at prefills, as a stream finds it, and per
//! step. `d` is not `e`: streams also stand still while the engine reads the prompts of others, which makes `d` 3 on a busy
//! fleet whose steps take what the constants say. My own stream will find it so. But what I add to each step takes the
//! time a step takes, and I am in as many steps as I have tokens.
//!
//! * `alpha·P`: a prefill is charged twice. Near saturation the second requests queue for what the first did not find.
//! * `lambda·n·P`: the stall. While the engine reads my prompt, `n` others get no token.
//! * `0.98`: the last blocks of a cache are never free in practice. `0.5`: my context grows, and others end before me.
//! * `A`: among endpoints that cost the same, the one that runs the LoRA adapter. A queue of a few dozen milliseconds there
//!   is worth a second copy elsewhere, so a popular adapter spreads. Engines name an adapter only while a request uses it; one
//!   that lies there unused counts as not loaded, and so this is no part of what is compared with first tokens.
//! * `mu`: a long prompt avoids queues a little more than a short one. It repairs the slowest first tokens: on a replay of
//!   conversations the 99th percentile is 9.0 s with 0, 8.4 s with 0.1 and 8.25 s with 0.6, which costs some goodput.
//!
//! # The knob
//!
//! An operator chooses one number, [`Knobs::for_latency_goal`]: 0 cares for the first token only and sends a request where it
//! starts soonest; 1 cares for the whole answer and weighs what it does to every other stream in full. The default, 0.1, was
//! best for the first token together with the rate at which tokens follow, on a replay of a public trace of conversations.
//!
//! # What is missing
//!
//! Each signal that is not there leaves the rest as it is:
//!
//! | missing | then |
//! |---|---|
//! | `wait_seconds` (0) | only the foreign queue and memory make a request wait |
//! | `foreign_requests` | the own ledger is all there is |
//! | `foreign_waiting` | foreign requests are all past their first token: no foreign wait |
//! | `mean_prefill_seconds` | a foreign request takes as long as this one, nothing of it cached |
//! | `foreign_kv_tokens` | the own requests' context is all there is |
//! | `capacity_tokens` (or 0) | memory is never full |
//! | `prompt_tokens` 0, the body was not read | half a step of prefill: waits and streams decide |
//! | `output_tokens` 0, as for embeddings | no slowdown of me or others, no wait for memory |
//! | adapters | nothing is loaded anywhere, as far as is known: no `A` |
//! | a speed | [`Learner`](crate::learned::Learner) gives the fleet's, [`Speed::default`] is nominal |
//!
//! Numbers that contradict each other count as the nearest that do not: more cached tokens than prompt, more requests in
//! prefill than in flight, more foreign requests waiting than there are. No result is negative, infinite or not a number.

mod constants;
mod estimate;
mod knobs;
#[cfg(test)]
mod tests;

pub use self::constants::Constants;
pub use self::estimate::{
    Load, Speed, Terms, Work, estimate, first_token_seconds, nominal_first_token, nominal_step, step_seconds,
};
pub use self::knobs::{Knobs, Switches};

/// A number that is at least 0 and at most `max`; what is no number is 0.
fn within(number: f64, max: f64) -> f64 {
    // `f64::min` is a call on wasm32, and this runs ten times for each endpoint.
    if number > max {
        max
    } else if number > 0.0 {
        number
    } else {
        0.0
    }
}
