//! What an operator can choose.

/// The weights of the terms; see the module's rule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Knobs {
    /// Weight of the own prefill, 0..=100.
    pub alpha: f64,
    /// Weight of the stall: my prefill, once for each request there. 0..=100.
    pub lambda: f64,
    /// Weight of the slowdown of me and of others, 0..=100.
    pub theta: f64,
    /// How much more a wait counts per second of own prefill, 0..=100 per second.
    pub mu: f64,
    /// Which terms count.
    pub terms: Switches,
}

/// Terms that can be left out, to see what they do. All count by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switches {
    /// The engine's queue.
    pub wait: bool,
    /// Room in memory.
    pub memory_wait: bool,
    /// The own prefill. The stall and the aversion to waits go by it all the same.
    pub prefill: bool,
    /// Requests there that wait for the own prefill.
    pub stall: bool,
    /// The own output.
    pub slowdown_of_me: bool,
    /// The streams there.
    pub slowdown_of_others: bool,
    /// Loading an adapter.
    pub adapter: bool,
}

impl Knobs {
    /// The default of the one knob.
    pub const DEFAULT_LATENCY_GOAL: f64 = 0.1;

    /// The weights for a goal between 0, the first token, and 1, the whole answer: `lambda = theta = goal`. What is
    /// outside counts as the nearer end, what is no number as the default.
    pub fn for_latency_goal(goal: f64) -> Self {
        let goal = if goal.is_nan() { Self::DEFAULT_LATENCY_GOAL } else { goal.clamp(0.0, 1.0) };
        Self { alpha: 2.0, lambda: goal, theta: goal, mu: 0.1, terms: Switches::default() }
    }
}

impl Default for Knobs {
    fn default() -> Self {
        Self::for_latency_goal(Self::DEFAULT_LATENCY_GOAL)
    }
}

impl Default for Switches {
    fn default() -> Self {
        Self {
            wait: true,
            memory_wait: true,
            prefill: true,
            stall: true,
            slowdown_of_me: true,
            slowdown_of_others: true,
            adapter: true,
        }
    }
}
