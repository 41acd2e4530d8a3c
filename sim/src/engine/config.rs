//! What an engine is made of: its cache, its limits and how long a step takes.

/// How long one engine step takes, in seconds: `fixed` plus each of the other constants times its count in the step.
///
/// The linear terms alone are the usual fit for a short context. The last two are attention: a decoding request reads
/// its whole context, and a prefill chunk of `n` tokens behind `c` cached ones attends `n * c + n * (n + 1) / 2` pairs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepTime {
    /// Every step: weights read, kernels launched, sampling.
    pub fixed: f64,
    /// Per prompt token computed in the step.
    pub per_prefill_token: f64,
    /// Per request that decodes one token in the step.
    pub per_decode_request: f64,
    /// Per KV token read by the decoding requests, i.e. the sum of their context lengths.
    pub per_context_token: f64,
    /// Per (query, key) pair attended by the prefill chunks.
    pub per_attended_pair: f64,
}

impl StepTime {
    /// Llama-3-8B on an A100-80GB. The slope is 15,000 prompt tokens/s, the sum of Vidur's measured linear and norm
    /// layers; attention is not in that table, so its two constants are zero and `per_decode_request` (vLLM on an RTX
    /// PRO 6000, 0.12 ms) carries the reading of about a thousand context tokens.
    pub const A100_LLAMA3_8B: Self = Self {
        fixed: 9.5e-3,
        per_prefill_token: 66e-6,
        per_decode_request: 0.12e-3,
        per_context_token: 0.0,
        per_attended_pair: 0.0,
    };

    /// Llama-3.1-8B on an RTX 4090 (1,008 GB/s). Two terms are the memory's: 16 GB of weights per step and 128 KiB per
    /// context token. The other two are fitted to the published vLLM 0.19 run that `tests/engine/calibration.rs` replays; a
    /// full step of 2,048 then gives 11,400 prompt tokens/s, the run's peak is 11,749.
    pub const RTX4090_LLAMA3_8B: Self = Self {
        fixed: 16e-3,
        per_prefill_token: 80e-6,
        per_decode_request: 0.1e-3,
        per_context_token: 130e-9,
        per_attended_pair: 0.0,
    };

    /// Llama-3.1-8B on an RTX PRO 6000, vLLM 0.19: 12.6 ms + 0.123 ms per running request, 16,306 prompt tokens/s.
    pub const RTX_PRO_6000_LLAMA3_8B: Self = Self {
        fixed: 12.6e-3,
        per_prefill_token: 55e-6,
        per_decode_request: 0.123e-3,
        per_context_token: 0.0,
        per_attended_pair: 0.0,
    };

    /// Qwen3-32B over two accelerators, fitted to a published 0.40 s for an 8,192-token prompt; for long contexts.
    pub const QWEN3_32B_TP2: Self = Self {
        fixed: 12e-3,
        per_prefill_token: 41e-6,
        per_decode_request: 41e-6,
        per_context_token: 56e-9,
        per_attended_pair: 1.5e-9,
    };

    /// The same engine on hardware `speed` times as fast.
    pub fn at_speed(self, speed: f64) -> Self {
        Self {
            fixed: self.fixed / speed,
            per_prefill_token: self.per_prefill_token / speed,
            per_decode_request: self.per_decode_request / speed,
            per_context_token: self.per_context_token / speed,
            per_attended_pair: self.per_attended_pair / speed,
        }
    }

    /// Seconds for a step of this work.
    pub fn seconds(&self, work: &Work) -> f64 {
        self.fixed
            + self.per_prefill_token * work.prefill_tokens as f64
            + self.per_decode_request * work.decode_requests as f64
            + self.per_context_token * work.context_tokens as f64
            + self.per_attended_pair * work.attended_pairs as f64
    }
}

/// What one step computes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work {
    /// Prompt tokens, over all chunks.
    pub prefill_tokens: u64,
    /// Requests that decode one token.
    pub decode_requests: u64,
    /// Context tokens of the decoding requests.
    pub context_tokens: u64,
    /// Pairs attended by the prefill chunks.
    pub attended_pairs: u64,
}

/// An engine's limits. Names are vLLM's.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Tokens in one KV block.
    pub block_size: u32,
    /// KV blocks in the pool.
    pub num_gpu_blocks: u32,
    /// Requests that may run at once.
    pub max_num_seqs: usize,
    /// Tokens computed in one step, prefill and decode together.
    pub max_num_batched_tokens: u32,
    /// Prompt and output together, in tokens. Cut to what the pool holds.
    pub max_model_len: u32,
    /// Adapters that may be in one batch and resident at once; 0 switches LoRA off.
    pub max_loras: usize,
    /// Seconds added to the step that loads an adapter.
    pub lora_load: f64,
    /// Reuse of cached blocks.
    pub enable_prefix_caching: bool,
    /// Admit a request only when its whole prompt fits into free blocks, as vLLM does since 0.19.
    pub reserve_full_prompt: bool,
    /// Length of a step.
    pub step_time: StepTime,
}

impl Default for Config {
    fn default() -> Self {
        Self::a100_llama3_8b()
    }
}

impl Config {
    /// Llama-3-8B on one A100-80GB: about 27,000 blocks are left beside the weights at 128 KiB per token.
    pub fn a100_llama3_8b() -> Self {
        Self {
            block_size: 16,
            num_gpu_blocks: 27_000,
            max_num_seqs: 256,
            max_num_batched_tokens: 2048,
            max_model_len: 131_072,
            max_loras: 0,
            lora_load: 0.05,
            enable_prefix_caching: true,
            reserve_full_prompt: true,
            step_time: StepTime::A100_LLAMA3_8B,
        }
    }

    /// Llama-3.1-8B on an RTX 4090 as in the published run: 2,588 blocks, a context of 32,768.
    pub fn rtx4090_llama3_8b() -> Self {
        Self {
            num_gpu_blocks: 2588,
            max_model_len: 32_768,
            step_time: StepTime::RTX4090_LLAMA3_8B,
            ..Self::a100_llama3_8b()
        }
    }

    /// Llama-3.1-8B on an RTX PRO 6000 (96 GB). The published run had `max_num_seqs` 128; its pool size is not known,
    /// 34,000 blocks is what the memory leaves.
    pub fn rtx_pro_6000_llama3_8b() -> Self {
        Self {
            num_gpu_blocks: 34_000,
            max_num_seqs: 128,
            step_time: StepTime::RTX_PRO_6000_LLAMA3_8B,
            ..Self::a100_llama3_8b()
        }
    }

    /// Qwen3-32B over two accelerators with 700,000 KV tokens and a budget of 8,192.
    pub fn qwen3_32b_tp2() -> Self {
        Self {
            num_gpu_blocks: 43_750,
            max_num_batched_tokens: 8192,
            step_time: StepTime::QWEN3_32B_TP2,
            ..Self::a100_llama3_8b()
        }
    }

    /// The same engine with a cache of this many tokens, rounded down to whole blocks.
    pub fn with_kv_tokens(self, tokens: u32) -> Self {
        Self { num_gpu_blocks: tokens / self.block_size.max(1), ..self }
    }

    /// The profile of that name, as on the command line; `None` if there is none.
    pub fn profile(name: &str) -> Option<Self> {
        Some(match name {
            "a100-llama3-8b" => Self::a100_llama3_8b(),
            "rtx4090-llama3-8b" => Self::rtx4090_llama3_8b(),
            "rtxpro6000-llama3-8b" => Self::rtx_pro_6000_llama3_8b(),
            "qwen3-32b-tp2" => Self::qwen3_32b_tp2(),
            _ => return None,
        })
    }

    /// Names that [`Config::profile`] knows.
    pub const PROFILES: [&str; 4] = ["a100-llama3-8b", "rtx4090-llama3-8b", "rtxpro6000-llama3-8b", "qwen3-32b-tp2"];

    /// Longest request the engine takes, in tokens: a request larger than the pool could never finish.
    pub fn context_len(&self) -> u32 {
        self.max_model_len.min(self.num_gpu_blocks.saturating_mul(self.block_size))
    }
}
