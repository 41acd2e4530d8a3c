//! `sim replay`: a trace and some rules in, a table out.

use std::error::Error;
use std::fs;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::Serialize;
use serde_json::{Map, Value};
use sim::engine::Config;
use sim::replay::{Agents, Chat, Plan, Reasoning, RuleKind, Scenario, SharedPrefix, Suite, Trial, Work, load, table};

#[derive(Args)]
pub(crate) struct Replay {
    /// Replay what the project promises and say row by row whether it holds; exits non-zero if a row fails.
    #[arg(long, conflicts_with_all = ["trace", "workload", "rules"])]
    suite: bool,
    /// With --suite: one seed, and only the strongest of the other rules.
    #[arg(long, requires = "suite")]
    quick: bool,
    /// With --suite: where the Mooncake traces are.
    #[arg(long, requires = "suite", default_value_os_t = default_traces())]
    traces: PathBuf,

    /// Trace to replay: Mooncake's .jsonl or Azure's .csv, .gz or not.
    #[arg(long, conflicts_with = "workload")]
    trace: Option<PathBuf>,
    /// Generated workload to replay instead of a trace.
    #[arg(long, value_enum, default_value = "shared-prefix")]
    workload: Generator,
    /// Arrivals per second: requests for shared-prefix, conversations for chat.
    #[arg(long)]
    rate: Option<f64>,
    /// How many times as fast as recorded calls arrive.
    #[arg(long, default_value_t = 1.0, value_parser = positive)]
    speedup: f64,

    /// Engines in the fleet.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=1024))]
    engines: u16,
    /// Engine and accelerator to imitate.
    #[arg(long, default_value = "qwen3-32b-tp2", value_parser = clap::builder::PossibleValuesParser::new(Config::PROFILES))]
    profile: String,
    /// Tokens in each engine's KV cache, instead of the profile's.
    #[arg(long, value_parser = clap::value_parser!(u32).range(16..))]
    kv_tokens: Option<u32>,
    /// Engines that are slower and their speed, e.g. 2x0.5; no router is told.
    #[arg(long)]
    slow: Option<Slow>,

    /// Rules to compare, separated by commas; RULE@INTERVAL scrapes at another interval than --scrape.
    #[arg(long, value_delimiter = ',', default_values_t = RuleKind::ALL.map(|(rule, _)| Choice { rule, scrape: None }))]
    rules: Vec<Choice>,
    /// Configuration of the rule `picker`, as for the filter; its servers are replaced by the simulated ones.
    #[arg(long)]
    config: Option<PathBuf>,
    /// Between two scrapes of an engine.
    #[arg(long, default_value = "100ms", value_parser = humantime::parse_duration)]
    scrape: Duration,
    /// Workers of the proxy; requests are dealt to them at random.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    workers: u16,
    /// Each worker knows only what it did itself.
    #[arg(long)]
    private: bool,
    /// Seeds to take the mean over.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,

    /// Replays at a time; results do not depend on it.
    #[arg(long, default_value_t = std::thread::available_parallelism().map_or(1, usize::from))]
    threads: usize,
    /// Also write everything, each seed included, to this file.
    #[arg(long)]
    json: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Generator {
    SharedPrefix,
    Chat,
    Agents,
    Reasoning,
}

/// A rule, maybe with a scrape interval of its own.
#[derive(Clone, Copy)]
struct Choice {
    rule: RuleKind,
    scrape: Option<Duration>,
}

/// Some engines at another speed.
#[derive(Clone, Copy)]
struct Slow {
    count: usize,
    speed: f64,
}

impl Replay {
    pub(crate) fn run(self) -> Result<(), Box<dyn Error>> {
        if self.suite {
            return self.run_suite();
        }
        let scenario = self.scenario()?;
        let trials = self.rules.iter().map(|choice| Trial {
            rule: choice.rule,
            scrape: choice.scrape.unwrap_or(self.scrape).max(Duration::from_millis(1)),
            workers: self.workers.into(),
            shared: !self.private,
        });
        let plan = Plan {
            trials: trials.map(|trial| (0, trial)).collect(),
            scenarios: vec![scenario],
            seeds: self.seeds,
            threads: self.threads,
        };
        let outcomes = plan.run(progress)?;
        print!("{}", table(&outcomes));
        self.write(&outcomes)
    }

    fn run_suite(&self) -> Result<(), Box<dyn Error>> {
        let suite = Suite { traces: self.traces.clone(), quick: self.quick, threads: self.threads };
        let report = suite.run(progress)?;
        print!("{}", report.markdown());
        self.write(&report)?;
        if report.holds() { Ok(()) } else { Err("a row of the suite failed".into()) }
    }

    fn scenario(&self) -> Result<Scenario, Box<dyn Error>> {
        let work = match (&self.trace, self.workload) {
            (Some(path), _) => Work::Trace(load(path).map_err(|error| format!("{}: {error}", path.display()))?),
            (None, Generator::SharedPrefix) => {
                let usual = SharedPrefix::default();
                Work::SharedPrefix(SharedPrefix { rate: self.rate.unwrap_or(usual.rate), ..usual })
            }
            (None, Generator::Chat) => {
                let usual = Chat::default();
                Work::Chat(Chat { rate: self.rate.unwrap_or(usual.rate), ..usual })
            }
            (None, Generator::Agents) => Work::Agents(Agents::default()),
            (None, Generator::Reasoning) => Work::Reasoning(Reasoning::default()),
        };
        let profile = Config::profile(&self.profile).unwrap_or_default();
        let engine = self.kv_tokens.map_or(profile.clone(), |tokens| profile.with_kv_tokens(tokens));
        let scenario = Scenario {
            name: self.trace.as_deref().map_or("generated".into(), |path| path.display().to_string()),
            work,
            speedup: self.speedup,
            engines: vec![engine; self.engines.into()],
            config: self.config.as_deref().map_or(Ok(Map::new()), read_config)?,
        };
        Ok(self.slow.map_or(scenario.clone(), |slow| scenario.slowed(slow.count, slow.speed)))
    }

    fn write(&self, results: &impl Serialize) -> Result<(), Box<dyn Error>> {
        let Some(path) = &self.json else { return Ok(()) };
        let json = serde_json::to_vec_pretty(results)?;
        fs::write(path, json).map_err(|error| format!("{}: {error}", path.display()).into())
    }
}

fn read_config(path: &Path) -> Result<Map<String, Value>, String> {
    let text = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    serde_json::from_slice(&text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Beside a checkout, where the traces of this project's benchmarks are kept.
fn default_traces() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/traces")
}

fn progress(done: usize, all: usize) {
    let mut terminal = std::io::stderr();
    if terminal.is_terminal() {
        // A terminal that went away is no reason to stop.
        let _ = write!(terminal, "\r{done}/{all} replays{}", if done == all { "\n" } else { "" });
    }
}

fn positive(text: &str) -> Result<f64, String> {
    let value = text.parse().ok().filter(|value: &f64| value.is_finite() && *value > 0.0);
    value.ok_or_else(|| "not a number above 0".into())
}

impl FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (rule, scrape) = text.split_once('@').map_or((text, None), |(rule, scrape)| (rule, Some(scrape)));
        let scrape = scrape.map(humantime::parse_duration).transpose().map_err(|error| error.to_string())?;
        Ok(Self { rule: rule.parse()?, scrape })
    }
}

impl std::fmt::Display for Choice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.rule.fmt(f)
    }
}

impl FromStr for Slow {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (count, speed) = text.split_once('x').ok_or("not of the form 2x0.5")?;
        Ok(Self { count: count.parse().map_err(|error| format!("{count:?}: {error}"))?, speed: positive(speed)? })
    }
}
