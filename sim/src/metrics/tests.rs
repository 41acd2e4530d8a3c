use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::*;
use crate::engine::{Counters, Outcome};

/// Type, help and label names of each family that has samples.
#[derive(Debug, Default, PartialEq)]
struct Family {
    kind: String,
    help: String,
    labels: BTreeSet<String>,
}

fn families(page: &str) -> BTreeMap<String, Family> {
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    let mut last = String::new();
    for line in page.lines().filter(|line| !line.is_empty() && !line.starts_with("# source:")) {
        let mut words = line.splitn(4, ' ');
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some("#"), Some("HELP"), Some(name), help) => {
                families.entry(name.to_owned()).or_default().help = help.unwrap_or_default().to_owned();
            }
            (Some("#"), Some("TYPE"), Some(name), Some(kind)) => {
                families.entry(name.to_owned()).or_default().kind = kind.to_owned();
                last = name.to_owned();
            }
            _ => {
                let (sample, value) = line.rsplit_once(' ').expect("a sample has a value");
                value.parse::<f64>().expect("a number");
                assert!(sample.starts_with(&last), "{sample} is not under {last}");
                families.entry(last.clone()).or_default().labels.extend(label_names(sample));
            }
        }
    }
    families
}

fn label_names(sample: &str) -> Vec<String> {
    let Some((_, labels)) = sample.split_once('{') else { return Vec::new() };
    let names = labels.split("\",").filter_map(|label| label.split_once("=\""));
    names.map(|(name, _)| name.to_owned()).collect()
}

fn page_of(flavor: Flavor, stats: &Stats, loras: &LoraSeries) -> String {
    let config = Config { max_loras: 2, ..Config::default() };
    let histograms = Histograms::default();
    flavor.render(&Page { model: "m", config: &config, stats, histograms: &histograms, loras, started: 1.8e9 })
}

fn busy() -> Stats {
    Stats {
        running: 3,
        waiting: 7,
        kv_blocks_used: 13_500,
        kv_usage: 0.5,
        counters: Counters { steps: 9, prefix_queries: 200, prefix_hits: 50, ..Counters::default() },
        ..Stats::default()
    }
}

fn busy_page(flavor: Flavor) -> String {
    let mut loras = LoraSeries::new(2, vec!["sql".to_owned()]);
    loras.update(&[0], 1.8e9);
    page_of(flavor, &busy(), &loras)
}

fn shared(file: &str) -> Option<String> {
    let shared = std::env::var_os("ENDPOINT_PICKER_SHARED")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared"), PathBuf::from);
    let page = std::fs::read_to_string(shared.join("data/metrics").join(file)).ok();
    if page.is_none() {
        println!("skipped: no {file} in the shared data directory {}", shared.display());
    }
    page
}

/// Everything we write is in the engine's own page, with the same type, help and label names.
fn assert_part_of(flavor: Flavor, file: &str, except: &[&str]) {
    let Some(real) = shared(file) else { return };
    let real = families(&real);
    for (name, ours) in families(&busy_page(flavor)) {
        if except.iter().any(|prefix| name.starts_with(prefix)) {
            continue;
        }
        let theirs = real.get(&name).unwrap_or_else(|| panic!("{name} is not in {file}"));
        assert_eq!(ours.kind, theirs.kind, "{name}");
        assert_eq!(ours.help, theirs.help, "{name}");
        if !theirs.labels.is_empty() && name != "vllm:cache_config_info" {
            assert_eq!(ours.labels, theirs.labels, "{name}");
        }
    }
}

#[test]
fn vllm_page_has_the_families_of_a_captured_one_and_no_other() {
    let file = "vllm-0.32.0-lora-queued.txt";
    assert_part_of(Flavor::Vllm, file, &[]);
    let Some(real) = shared(file) else { return };
    let ours = families(&busy_page(Flavor::Vllm));
    let missing: Vec<_> = families(&real).into_keys().filter(|name| !ours.contains_key(name)).collect();
    // Sizes of bodies, which are summaries.
    assert!(missing.iter().all(|name| name.starts_with("http_") && name.contains("_size_")), "{missing:?}");
}

#[test]
fn other_pages_are_parts_of_the_engines_own() {
    assert_part_of(Flavor::VllmOld, "vllm-0.8.5-idle.txt", &[]);
    assert_part_of(Flavor::LlamaCpp, "llamacpp-b11434-idle.txt", &[]);
    assert_part_of(Flavor::Lmdeploy, "lmdeploy-0.18.0-busy.txt", &[]);
    assert_part_of(Flavor::TritonTensorrtLlm, "triton-trtllm-readme-idle.txt", &[]);
    // That page's histograms have no samples.
    let created = ["trtllm_time_to_first_token_seconds_created"];
    assert_part_of(Flavor::TrtllmServe, "trtllm-serve-2026-busy.txt", &created);
    // Counted by the front's collector, which that page is without.
    let front = ["sglang:prompt_tokens", "sglang:generation_tokens", "sglang:num_requests", "sglang:e2e"];
    assert_part_of(Flavor::Sglang, "sglang-0.5.23-busy.txt", &front);
}

#[test]
fn vllm_page_is_as_large_as_a_real_one() {
    let size = busy_page(Flavor::Vllm).len();
    assert!((45_000..65_000).contains(&size), "{size} bytes");
}

#[test]
fn queue_batch_and_cache_are_told_in_each_engines_words() {
    for (flavor, lines) in [
        (
            Flavor::Vllm,
            &[
                "vllm:num_requests_waiting{engine=\"0\",model_name=\"m\"} 7.0\n",
                "vllm:num_requests_running{engine=\"0\",model_name=\"m\"} 3.0\n",
                "vllm:kv_cache_usage_perc{engine=\"0\",model_name=\"m\"} 0.5\n",
                ",block_size=\"16\",",
                ",num_gpu_blocks=\"27000\",",
            ][..],
        ),
        (Flavor::VllmOld, &["vllm:gpu_cache_usage_perc{engine=\"0\",model_name=\"m\"} 0.5\n"]),
        (
            Flavor::Sglang,
            &[
                "sglang:num_queue_reqs{engine_type=\"unified\",model_name=\"m\",moe_ep_rank=\"0\",pp_rank=\"0\",tp_rank=\"0\"} 7.0\n",
                "} NaN\n",
            ],
        ),
        (
            Flavor::TrtllmServe,
            &[
                "trtllm_num_requests_waiting{engine_type=\"trtllm\",model_name=\"m\"} 7.0\n",
                "trtllm_kv_cache_tokens_per_block{engine_type=\"trtllm\",model_name=\"m\"} 16.0\n",
            ],
        ),
        (
            Flavor::TritonTensorrtLlm,
            &[
                "nv_trt_llm_request_metrics{model=\"m\",request_type=\"waiting\",version=\"1\"} 7\n",
                "nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type=\"fraction\",model=\"m\",version=\"1\"} 0.5\n",
            ],
        ),
        (Flavor::LlamaCpp, &["llamacpp:requests_deferred 7\n", "llamacpp:requests_processing 3\n"]),
        (Flavor::Tgi, &["tgi_queue_size 7\n", "tgi_batch_current_size 3\n"]),
        (Flavor::Lmdeploy, &["lmdeploy:num_requests_waiting{engine=\"0\",model_name=\"m\"} 7.0\n"]),
    ] {
        let page = busy_page(flavor);
        for line in lines {
            assert!(page.contains(line), "{}: no {line} in\n{page}", flavor.name());
        }
    }
}

#[test]
fn trtllm_gauges_have_no_sample_before_the_first_step() {
    let page = page_of(Flavor::TrtllmServe, &Stats::default(), &LoraSeries::new(0, Vec::new()));
    assert!(page.contains("# TYPE trtllm_num_requests_waiting gauge\n"));
    assert!(!page.contains("trtllm_num_requests_waiting{"));
}

#[test]
fn lora_series_pile_up_and_the_newest_tells_the_truth() {
    let mut loras = LoraSeries::new(2, vec!["sql".to_owned(), "chat".to_owned()]);
    loras.update(&[], 1.0);
    assert!(!page_of(Flavor::Vllm, &busy(), &loras).contains("vllm:lora_requests_info{"));
    for (adapters, now) in [(&[0][..], 1.8e9), (&[0, 1], 1.8e9 + 1.0), (&[1, 0], 1.8e9 + 2.0), (&[], 1.8e9 + 3.0)] {
        loras.update(adapters, now);
    }
    loras.update(&[0], 1.8e9 + 4.0);
    let page = page_of(Flavor::Vllm, &busy(), &loras);
    let series: Vec<_> = page.lines().filter(|line| line.starts_with("vllm:lora_requests_info{")).collect();
    assert_eq!(series.len(), 4);
    assert_eq!(
        series[0],
        "vllm:lora_requests_info{max_lora=\"2\",running_lora_adapters=\"sql\",waiting_lora_adapters=\"sql\"} 1.800000004e+09"
    );
}

#[test]
fn histograms_are_cumulative_and_in_wall_seconds() {
    let mut histograms = Histograms::default();
    let outcome = Outcome {
        prompt_tokens: 100,
        cached_tokens: 0,
        output_tokens: 11,
        preemptions: 0,
        arrived: 0.0,
        scheduled: 1.0,
        first_token: 3.0,
        finished: 5.0,
    };
    histograms.record(&outcome, 10.0);
    let at_or_below: Vec<_> = histograms.ttft.cumulative().map(|(_, count)| count).collect();
    assert_eq!(histograms.ttft.sum(), 0.3);
    assert_eq!(at_or_below.iter().filter(|count| **count == 0).count(), 9);
    assert_eq!(histograms.ttft.count(), 1);
}

#[test]
fn flavors_have_names() {
    for flavor in Flavor::ALL {
        assert_eq!(flavor.name().parse(), Ok(flavor));
    }
    assert!("vlm".parse::<Flavor>().is_err());
}
