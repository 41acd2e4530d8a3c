//! The texts of real servers, each with what it should come to.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::*;

/// Texts kept with the crate, and the shared data directory where it is there.
fn texts() -> BTreeMap<String, Vec<u8>> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let shared = std::env::var_os("ENDPOINT_PICKER_SHARED").map_or_else(|| here.join("../shared"), PathBuf::from);
    let mut texts = BTreeMap::new();
    for dir in [here.join("tests/data/metrics"), shared.join("data/metrics")] {
        let Ok(entries) = std::fs::read_dir(&dir) else {
            println!("skipped: the shared data directory is not there");
            continue;
        };
        for path in entries.map(|entry| entry.unwrap().path()).filter(|path| path.extension() == Some("txt".as_ref())) {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            texts.insert(name, std::fs::read(path).unwrap());
        }
    }
    texts
}

fn expected(name: &str) -> (Engine, Reading) {
    use Engine::*;
    let reading = |load: Option<(u32, u32)>, kv_usage, blocks: Option<(u32, u32)>| Reading {
        waiting: load.map(|(waiting, _)| waiting),
        running: load.map(|(_, running)| running),
        kv_usage,
        block_size: blocks.map(|(size, _)| size),
        num_blocks: blocks.map(|(_, num)| num),
        lora: None,
    };
    let idle = |blocks| reading(Some((0, 0)), Some(0.0), Some(blocks));
    let with = |lora, reading| Reading { lora: Some(lora), ..reading };
    match name {
        "llamacpp-b11434-idle" => (LlamaCpp, reading(Some((0, 0)), None, None)),
        "lmdeploy-0.18.0-busy" => (Lmdeploy, reading(Some((8, 32)), Some(0.61), None)),
        "lmdeploy-0.18.0-idle" => (Lmdeploy, reading(Some((0, 0)), Some(0.0), None)),
        "sglang-0.5.23-busy-dp2" => (Sglang, reading(Some((17, 48)), Some(0.415), Some((1, 437_524)))),
        "sglang-0.5.23-busy-priority" => (Sglang, reading(Some((17, 48)), Some(0.83), Some((1, 437_524)))),
        "sglang-0.5.23-busy" => (Sglang, reading(Some((17, 48)), Some(0.83), Some((1, 437_524)))),
        "sglang-0.5.23-idle" => (Sglang, idle((1, 437_524))),
        "sglang-docs-old-overloaded" => (Sglang, reading(Some((2_826, 162)), Some(0.28), None)),
        "triton-trtllm-readme-idle" => (TritonTensorrtLlm, reading(Some((1, 1)), Some(0.4875), Some((64, 6_239)))),
        "trtllm-serve-2026-busy" => (TrtllmServe, reading(Some((5, 24)), Some(0.4875), Some((32, 6_239)))),
        "trtllm-serve-2026-idle" => (TrtllmServe, Reading::default()),
        "vllm-0.10.2-busy" => (Vllm, reading(Some((12, 37)), Some(0.7312), Some((16, 27_546)))),
        "vllm-0.10.2-idle" | "vllm-0.8.5-idle" => (Vllm, idle((16, 27_546))),
        "vllm-0.32.0-after-prefix-run" => (Vllm, idle((128, 5_461))),
        "vllm-0.32.0-afterload" | "vllm-0.32.0-idle" => (Vllm, idle((128, 16_384))),
        "vllm-0.32.0-lora-drained" => (Vllm, with(lora(2, &[], &[]), idle((32, 300)))),
        "vllm-0.32.0-lora-idle" => (Vllm, idle((32, 300))),
        "vllm-0.32.0-lora-queued" => {
            let load = reading(Some((12, 4)), Some(0.602_006_688_963_210_7), Some((32, 300)));
            (Vllm, with(lora(2, &["sql", "chat"], &[]), load))
        }
        _ => panic!("what {name} should come to is not in the table"),
    }
}

#[test]
fn every_text_is_read_exactly() {
    for (name, text) in texts() {
        let (_, expected) = expected(&name);
        assert_eq!(read(&text, &EngineSpec::auto()), Ok(expected), "{name}");
    }
}

#[test]
fn naming_the_engine_gives_the_same_and_no_other_engine_takes_its_text() {
    for (name, text) in texts() {
        let (engine, expected) = expected(&name);
        for other in Engine::ALL {
            let reading = read(&text, &EngineSpec::builtin(other));
            let right = if other == engine { Ok(expected.clone()) } else { Err(ScrapeError::NoKnownFamily) };
            assert_eq!(reading, right, "{name} as {other}");
        }
    }
}

#[test]
fn crlf_line_ends_and_a_missing_last_one_change_nothing() {
    let auto = EngineSpec::auto();
    for (name, text) in texts() {
        let crlf = String::from_utf8(text.clone()).unwrap().replace('\n', "\r\n");
        assert_eq!(read(crlf.as_bytes(), &auto), read(&text, &auto), "{name}");
        assert_eq!(read(text.trim_ascii_end(), &auto), read(&text, &auto), "{name}");
    }
}

/// Every cut is read from the start of the text. An optimised build cuts all texts at every byte, and `./build.sh test` runs
/// it. A debug build would take minutes for that: there only the small texts and the lines with a signal are cut at every
/// byte, the rest at each 997th.
#[test]
fn no_cut_of_a_text_panics_or_turns_a_number_into_zero() {
    const SMALL: usize = 5_000;
    const STRIDE: usize = if cfg!(debug_assertions) { 997 } else { 1 };
    let spec = EngineSpec::auto();
    let (mut cuts, mut skipped) = (0, 0);
    for (name, text) in texts() {
        let whole = numbers(&read(&text, &spec).unwrap());
        let mut start = 0;
        for line in text.split_inclusive(|&byte| byte == b'\n') {
            let telling = spec.sampled(line).is_some();
            for end in start..start + line.len() {
                if text.len() > SMALL && !telling && end % STRIDE != 0 {
                    skipped += 1;
                    continue;
                }
                cuts += 1;
                let Ok(reading) = read(&text[..end], &spec) else { continue };
                let lost = whole
                    .iter()
                    .zip(numbers(&reading))
                    .any(|(whole, cut)| whole.is_some_and(|n| n > 0.0) && cut == Some(0.0));
                let value = start + line.iter().rposition(|&byte| byte == b' ').unwrap_or(0);
                assert!(!lost || telling && end > value, "{name} cut at {end}: {reading:?}");
            }
            start += line.len();
        }
    }
    println!("{cuts} cuts read, {skipped} skipped");
}

fn numbers(reading: &Reading) -> [Option<f64>; 5] {
    let Reading { waiting, running, kv_usage, block_size, num_blocks, lora: _ } = reading;
    let count = |count: &Option<u32>| count.map(f64::from);
    [count(waiting), count(running), *kv_usage, count(block_size), count(num_blocks)]
}
