//! Reading a metrics text of 60 KB, as vLLM has it: time by criterion, then instructions by callgrind, which do not
//! depend on what else the machine does.

use std::hint::black_box;
use std::process::Command;

use criterion::{Criterion, Throughput};
use endpoint_picker::scrape::{EngineSpec, read};

const TEXT: &[u8] = include_bytes!("../tests/data/metrics/vllm-0.32.0-lora-drained.txt");

/// Makes this program read the text so many times and do nothing else.
const ITERATIONS: &str = "SCRAPE_BENCH_ITERATIONS";

fn main() {
    let spec = EngineSpec::auto();
    if let Some(iterations) = std::env::var(ITERATIONS).ok().and_then(|text| text.parse::<u64>().ok()) {
        for _ in 0..iterations {
            let _ = black_box(read(black_box(TEXT), &spec));
        }
        return;
    }

    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("scrape");
    group.throughput(Throughput::Bytes(TEXT.len() as u64));
    group.bench_function("vllm 60 KB", |bencher| bencher.iter(|| read(black_box(TEXT), &spec)));
    let large = TEXT.repeat(5_000_000 / TEXT.len());
    group.throughput(Throughput::Bytes(large.len() as u64));
    group.sample_size(20);
    group.bench_function("5 MB", |bencher| bencher.iter(|| read(black_box(&large), &spec)));
    let wanted: String =
        (0..60_000).map(|i| format!("vllm:num_requests_waiting{{engine=\"{i}\",model_name=\"m\"}} 1.0\n")).collect();
    group.throughput(Throughput::Bytes(wanted.len() as u64));
    group.bench_function("60 000 lines that are all wanted", |bencher| {
        bencher.iter(|| read(black_box(wanted.as_bytes()), &spec))
    });
    group.finish();
    criterion.final_summary();

    // Cargo passes it for `cargo bench` and not for `cargo test`.
    if std::env::args().any(|argument| argument == "--bench") {
        let counts = instructions(10).and_then(|few| Some((few, instructions(110)?)));
        match counts {
            Some((few, many)) => println!("scrape/vllm 60 KB: {} instructions", many.saturating_sub(few) / 100),
            None => println!("scrape/vllm 60 KB: instructions not counted, valgrind is not there"),
        }
    }
}

/// Instructions of a run of this program with so many iterations.
fn instructions(iterations: u64) -> Option<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(std::env::current_exe().ok()?)
        .env(ITERATIONS, iterations.to_string())
        .output()
        .ok()?;
    let report = String::from_utf8_lossy(&output.stderr);
    report.lines().find_map(|line| line.split_once("Collected :")?.1.trim().parse().ok())
}
