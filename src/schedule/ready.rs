//! Profiles that are ready, by name.

use std::fmt;

use crate::decimal::Written;

/// Endpoints that each of them names: the pick and two to fall back to, as many as the retries of the shipped proxy
/// configuration.
pub const ENDPOINTS: u32 = 3;

/// The profile that is used where none is named.
pub const DEFAULT: &Ready = &Ready {
    name: "expected-cost",
    summary: "Where the request costs the fewest seconds, for itself and for the streams that are there: wait, prefill of \
              what is not cached, slowdown. Learns how fast each endpoint is; nothing has to be tuned. For every kind of \
              traffic. Its one knob is `latencyGoal`: nearer to 1 where whole answers matter more than first tokens.",
    filters: &["healthy", "lora-capacity"],
    scorers: &[("expected-cost-scorer", 1.0)],
    picker: "max-score-picker",
};

/// All of them.
pub const READY: [&Ready; 5] = [
    DEFAULT,
    &Ready {
        name: "sticky-until-saturated",
        summary: "Where most of the prompt is cached, as long as the first token there comes at most 18 s later than \
                  elsewhere; of these, or else of all, where the fewest prompt tokens wait to be read. What llm-d \
                  recommends. For few, long, shared prompts and clients that can wait; set `peakPrefillThroughput` to what \
                  your engine reads in a second.",
        filters: &["healthy", "prefix-cache-affinity-filter"],
        scorers: &[("token-load-scorer", 1.0)],
        picker: "max-score-picker",
    },
    &Ready {
        name: "epp-default",
        summary: "A blend of short queue, free KV cache and cached prefix: the default of the Gateway API Inference \
                  Extension's endpoint picker. To move over from there without another behaviour, or to compare. Goes by \
                  the last scrape alone, so requests that come between two scrapes may all go to one endpoint.",
        filters: &["healthy"],
        scorers: &[("queue-scorer", 2.0), ("kv-cache-utilization-scorer", 2.0), ("prefix-cache-scorer", 3.0)],
        picker: "max-score-picker",
    },
    &Ready {
        name: "least-request",
        summary: "Where this proxy has the fewest requests in flight. For prompts that share nothing and servers that tell \
                  nothing, or to compare.",
        filters: &["healthy"],
        scorers: &[("active-request-scorer", 1.0)],
        picker: "max-score-picker",
    },
    &Ready {
        name: "round-robin",
        summary: "In turn, whatever the load. To compare.",
        filters: &["healthy"],
        scorers: &[],
        picker: "round-robin-picker",
    },
];

/// A profile whose plugins have their default parameters but for `maxNumOfEndpoints`, which is [`ENDPOINTS`].
#[derive(Debug)]
pub struct Ready {
    /// What it is called in the configuration.
    pub name: &'static str,
    /// What it does, and for what it is.
    pub summary: &'static str,
    /// Names of filters, in this order.
    pub filters: &'static [&'static str],
    /// Names and weights of scorers.
    pub scorers: &'static [(&'static str, f64)],
    /// Name of the picker.
    pub picker: &'static str,
}

/// The JSON to write in its place, for one who wants to change something in it.
impl fmt::Display for Ready {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |entries: Vec<String>| entries.join(",\n    ");
        let filters = self.filters.iter().map(|name| format!(r#"{{ "type": "{name}" }}"#));
        let scorers = self
            .scorers
            .iter()
            .map(|(name, weight)| format!(r#"{{ "type": "{name}", "weight": {} }}"#, Written(*weight)));
        writeln!(f, "{{\n  \"filters\": [\n    {}\n  ],", list(filters.collect()))?;
        if !self.scorers.is_empty() {
            writeln!(f, "  \"scorers\": [\n    {}\n  ],", list(scorers.collect()))?;
        }
        let parameters = format!(r#"{{ "maxNumOfEndpoints": {ENDPOINTS} }}"#);
        write!(f, "  \"picker\": {{ \"type\": \"{}\", \"parameters\": {parameters} }}\n}}", self.picker)
    }
}
