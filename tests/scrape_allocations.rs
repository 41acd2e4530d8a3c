//! How much memory reading a metrics text takes.
//!
//! A file of its own: the counting allocator serves the whole test binary.
#![cfg(not(target_family = "wasm"))]

use allocation_counter::{AllocationInfo, measure};
use endpoint_picker::scrape::{EngineSpec, read};

const TEXT: &str = include_str!("data/metrics/vllm-0.32.0-lora-queued.txt");

fn reading(text: &str) -> AllocationInfo {
    let spec = EngineSpec::auto();
    measure(|| assert!(read(text.as_bytes(), &spec).is_ok()))
}

#[test]
fn no_line_allocates() {
    let once = reading(TEXT);
    let fifty_times = reading(&TEXT.repeat(50));
    assert_eq!(once.count_total, fifty_times.count_total);
    assert_eq!(once.bytes_max, fifty_times.bytes_max);
    assert!(once.count_total <= 20, "{} allocations", once.count_total);
}

#[test]
fn a_hostile_text_takes_bounded_memory() {
    let mut text = String::new();
    for i in 0..20_000 {
        text += &format!("vllm:num_requests_waiting{{engine=\"{i}\"}} 1\n");
        text +=
            &format!("vllm:lora_requests_info{{engine=\"{i}\",running_lora_adapters=\"{}\"}} 1\n", "a,".repeat(i % 99));
    }
    let most = reading(&text).bytes_max;
    assert!(most < 64 * 1024, "{most} bytes");
}
