//! What the suite replays.

use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::replay::experiment::{Scenario, Trial, Work};
use crate::replay::rules::RuleKind;
use crate::replay::trace::{self, Agents, Chat, Reasoning, SharedPrefix, Workload};

pub(super) const CONVERSATION: &str = "conversation x2";
pub(super) const CONVERSATION_SLOW: &str = "conversation x1.5";
pub(super) const CONVERSATION_FAST: &str = "conversation x2.2";
pub(super) const SYNTHETIC: &str = "synthetic x2";
pub(super) const SHARED_PREFIX: &str = "shared prefix 11/s";
pub(super) const CHAT: &str = "chat";
pub(super) const AGENTS: &str = "agents";
pub(super) const REASONING: &str = "reasoning";
pub(super) const MIXED_CHAT: &str = "chat, 2 of 8 at 0.3x";
pub(super) const MIXED_PREFIX: &str = "shared prefix 10/s, 2 of 8 at 0.5x";
pub(super) const ONE_BEGINNING: &str = "chat, one first block";

/// The rule that is judged.
pub(super) const OURS: RuleKind = RuleKind::Picker;

/// Between scrapes that should make no difference.
pub(super) const SCRAPES: [Duration; 3] = [Duration::from_millis(50), Duration::from_secs(1), Duration::from_secs(5)];

/// Workers of a large proxy.
pub(super) const WORKERS: usize = 16;

/// A trace and the fleet speeds it is replayed at.
const TRACES: [(&str, &[(&str, f64)]); 2] = [
    ("mooncake_conversation_trace.jsonl", &[(CONVERSATION, 2.0), (CONVERSATION_SLOW, 1.5), (CONVERSATION_FAST, 2.2)]),
    ("mooncake_synthetic_trace.jsonl", &[(SYNTHETIC, 2.0)]),
];

/// KV tokens of an engine with a large cache, and of one as in the published benchmarks.
const LARGE: u32 = 700_000;
const SMALL: u32 = 307_328;

/// A scenario that cannot be had, and why.
pub(super) type Missing = (&'static str, String);

/// All scenarios, or why not.
pub(super) fn scenarios(traces: &Path) -> (Vec<Scenario>, Vec<Missing>) {
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for (file, replays) in TRACES {
        match load(traces, file) {
            Ok(workload) => found.extend(replays.iter().map(|(name, speedup)| Scenario {
                speedup: *speedup,
                ..Scenario::new(name, Work::Trace(workload.clone()), 8, LARGE)
            })),
            Err(reason) => missing.extend(replays.iter().map(|(name, _)| (*name, reason.clone()))),
        }
    }
    let chat = || Work::Chat(Chat::default());
    let prefix = |rate| Work::SharedPrefix(SharedPrefix { rate, ..SharedPrefix::default() });
    let one_beginning = Chat { applications: 1, system: trace::ROUTER_BLOCK, ..Chat::default() };
    found.extend([
        Scenario::new(SHARED_PREFIX, prefix(11.0), 8, SMALL),
        Scenario::new(CHAT, chat(), 8, LARGE),
        Scenario::new(AGENTS, Work::Agents(Agents::default()), 10, LARGE),
        Scenario::new(REASONING, Work::Reasoning(Reasoning::default()), 10, SMALL),
        Scenario::new(MIXED_CHAT, chat(), 8, LARGE).slowed(2, 0.3),
        Scenario::new(MIXED_PREFIX, prefix(10.0), 8, SMALL).slowed(2, 0.5),
        Scenario::new(ONE_BEGINNING, Work::Chat(one_beginning), 8, LARGE),
    ]);
    found.iter_mut().for_each(|scenario| scenario.config = config());
    (found, missing)
}

/// The picker as it is judged.
fn config() -> Map<String, Value> {
    Map::from_iter([("profile".into(), json!("expected-cost"))])
}

fn load(directory: &Path, file: &str) -> Result<Workload, String> {
    let packed = directory.join(format!("{file}.gz"));
    let path = if packed.exists() { packed } else { directory.join(file) };
    if !path.exists() {
        return Err(format!("no {file} or {file}.gz in {}", directory.display()));
    }
    trace::load(&path).map_err(|error| format!("{}: {error}", path.display()))
}

/// What is tried on a scenario.
pub(super) fn trials(scenario: &str, quick: bool) -> Vec<Trial> {
    let ours = Trial::of(OURS);
    let workers = |shared| Trial { workers: WORKERS, shared, ..ours };
    let mut trials = match scenario {
        ONE_BEGINNING => vec![],
        MIXED_CHAT | MIXED_PREFIX => rivals(true),
        _ => rivals(quick),
    };
    trials.push(ours);
    match scenario {
        CONVERSATION => {
            trials.extend(SCRAPES.map(|scrape| Trial { scrape, ..ours }));
            trials.extend([workers(true), workers(false)]);
        }
        SHARED_PREFIX | CHAT | AGENTS => trials.extend([workers(true), workers(false)]),
        ONE_BEGINNING => trials.push(workers(false)),
        _ => {}
    }
    trials
}

/// The other rules; only the strongest of them if it has to be quick.
fn rivals(quick: bool) -> Vec<Trial> {
    let weak =
        [RuleKind::RoundRobin, RuleKind::LeastRequest, RuleKind::AibrixPrefixCache, RuleKind::Preble, RuleKind::Dynamo];
    let epp = |scrape| Trial { scrape, ..Trial::of(RuleKind::EppDefault) };
    let mut trials = Vec::new();
    for (rule, _) in RuleKind::ALL {
        match rule {
            _ if rule == OURS || rule == RuleKind::Reference => {}
            _ if quick && weak.contains(&rule) => {}
            RuleKind::EppDefault if quick => trials.push(epp(Duration::from_millis(50))),
            RuleKind::EppDefault => trials.extend([epp(Duration::from_millis(50)), epp(Duration::from_secs(1))]),
            _ => trials.push(Trial::of(rule)),
        }
    }
    trials
}
