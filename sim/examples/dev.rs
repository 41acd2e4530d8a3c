#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]
use sim::replay::*;
use std::time::Instant;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let kind = args[1].as_str();
    let x: f64 = args[2].parse().unwrap();
    let rules: Vec<RuleKind> = args[3].split(',').map(|r| r.parse().unwrap()).collect();
    let seeds: u64 = args.get(4).map_or(1, |s| s.parse().unwrap());
    let env = |k: &str, d: f64| std::env::var(k).map_or(d, |v| v.parse().unwrap());
    let dir = env!("CARGO_MANIFEST_DIR").to_string() + "/../../shared/data/traces/";
    let (n, kv) = match kind {
        "b2b" => (8, 307_328),
        "agents" => (10, 700_000),
        "reason" => (10, 307_328),
        _ => (8, 700_000),
    };
    let n = env("N", n as f64) as usize;
    let kv = env("KV", kv as f64) as u32;
    let loaded = match kind {
        "conv" => Some(load((dir + "mooncake_conversation_trace.jsonl.gz").as_ref()).unwrap()),
        "synth" => Some(load((dir + "mooncake_synthetic_trace.jsonl.gz").as_ref()).unwrap()),
        _ => None,
    };
    println!("{:<24} {:>7} {:>7} {:>6} {:>6} {:>6} {:>6} {:>5} {:>5} {:>5} {:>6} {:>6} {:>6} {:>6}", "rule", "ttft", "p50", "p90", "p99", "e2e", "tpot", "tp90", "good", "hit", "imbal", "preem", "rate", "secs");
    for rule in rules {
        let mut rows = vec![];
        let t = Instant::now();
        for seed in 1..=seeds {
            let w = match kind {
                "b2b" => SharedPrefix { rate: x, ..Default::default() }.generate(seed),
                "chat" => Chat { rate: x, ..Default::default() }.generate(seed),
                "agents" => Agents::default().generate(seed),
                "reason" => Reasoning::default().generate(seed),
                _ => loaded.clone().unwrap().spread(seed).sped_up(x),
            };
            let mut world = World::new(n, kv, seed);
            world.scrape = env("SCRAPE", 0.05);
            let slow = env("SLOW", 0.0);
            if slow > 0.0 { world = world.slowed(2, slow) }
            for e in &mut world.engines { e.reserve_full_prompt = env("RESERVE", 1.0) > 0.0; }
            let mut fleet = Fleet::of(&world.engines, seed);
            fleet.workers = env("W", 1.0) as usize;
            fleet.shared = env("PRIVATE", 0.0) == 0.0;
            let served = world.replay(&w, &mut rule.routers(&fleet));
            if std::env::var("PER").is_ok() {
                for e in 0..n {
                    let o: Vec<_> = served.iter().filter(|s| s.engine == e).filter_map(|s| Some((s, s.outcome.as_ref()?))).collect();
                    let c = o.len() as f64;
                    let unc: f64 = o.iter().map(|(_, o)| f64::from(o.prompt_tokens - o.cached_tokens)).sum::<f64>();
                    let pr: f64 = o.iter().map(|(_, o)| f64::from(o.prompt_tokens)).sum::<f64>();
                    let out: f64 = o.iter().map(|(_, o)| f64::from(o.output_tokens)).sum::<f64>();
                    let ttft: f64 = o.iter().map(|(s, _)| s.first_token - s.arrived).sum::<f64>();
                    let e2e: f64 = o.iter().map(|(s, _)| s.finished - s.arrived).sum::<f64>();
                    println!("  engine {e}: {c} calls, prompt {:.0} uncached {:.0} total unc {:.0}k out {:.0} ttft {:.3} e2e {:.2}", pr / c, unc / c, unc / 1e3, out / c, ttft / c, e2e / c);
                }
            }
            rows.push(Summary::of(n, &served));
        }
        for s in &rows {
            println!("{:<24} {:>7.3} {:>7.3} {:>6.3} {:>6.2} {:>6.2} {:>6.4} {:>5.3} {:>5.3} {:>5.3} {:>6.3} {:>6} {:>6.0} {:>6.2}", rule.name(), s.ttft_mean, s.ttft_p50, s.ttft_p90, s.ttft_p99, s.e2e_mean, s.tpot_mean, s.tpot_p90, s.goodput, s.hit_rate, s.imbalance, s.preemptions, s.output_rate, t.elapsed().as_secs_f64() / rows.len() as f64);
        }
    }
}
