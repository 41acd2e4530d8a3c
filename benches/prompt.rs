//! What a request costs before it is scheduled: reading its body, and asking and updating the prefix index.
#![allow(missing_docs)]

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use endpoint_picker::fleet::EndpointId;
use endpoint_picker::prefix::Index;
use endpoint_picker::prompt::{Blocks, Chain, Dialect, read};

/// A chat of `size` bytes: a system prompt, then turns of some lines each, as escaped as real ones are.
fn chat(size: usize) -> Vec<u8> {
    let line = r#"The quick brown fox jumps over the lazy dog, and then says \"hello\" to it.\n"#;
    let mut body = br#"{"model":"m","stream":true,"messages":[{"role":"system","content":"You are helpful."}"#.to_vec();
    while body.len() + 1000 < size {
        for role in ["user", "assistant"] {
            let message = format!(r#",{{"role":"{role}","content":"{}"}}"#, line.repeat(6));
            body.extend_from_slice(message.as_bytes());
        }
    }
    body.extend_from_slice(b"]}");
    body
}

fn bodies(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("prompt");
    for size in [4 << 10, 128 << 10] {
        let body = chat(size);
        group.throughput(Throughput::Bytes(body.len() as u64));
        group.bench_function(format!("chat {} KB", size >> 10), |bencher| {
            bencher.iter(|| read(Dialect::ChatCompletions, black_box(&body), None, &Blocks::default()));
        });
    }
    let text = format!(r#"{{"model":"m","prompt":"{}"}}"#, "lorem ipsum ".repeat(128 * 1024 / 12));
    group.throughput(Throughput::Bytes(text.len() as u64));
    group.bench_function("completion 128 KB", |bencher| {
        bencher.iter(|| read(Dialect::Completions, black_box(text.as_bytes()), None, &Blocks::default()));
    });
    let ids = (0..20_000).map(|id| (id * 7 % 100_000).to_string()).collect::<Vec<_>>().join(",");
    let ids = format!(r#"{{"model":"m","prompt":[{ids}]}}"#);
    group.throughput(Throughput::Bytes(ids.len() as u64));
    group.bench_function("20000 token ids", |bencher| {
        bencher.iter(|| read(Dialect::Completions, black_box(ids.as_bytes()), None, &Blocks::default()));
    });
}

/// A prompt of 128 blocks that shares its first `common` blocks with all others.
fn chain(common: u64, own: u64) -> Chain {
    let hash = |at: u64| xxhash_rust::xxh3::xxh3_64_with_seed(&at.to_le_bytes(), if at < common { 0 } else { own });
    Chain { hashes: (0..128).map(hash).collect(), tokens: 128 * 64 }
}

fn index(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("prefix");
    let endpoints: Vec<_> = (0..32).map(EndpointId).collect();
    let mut matched = Vec::new();
    for (name, common) in [("a quarter shared by all", 32), ("all shared by all", 128)] {
        let mut index = Index::new(200_000);
        for own in 1..1000 {
            index.insert(&[chain(common, own)], EndpointId(own % 32), 10_000);
        }
        let prompt = [chain(common, 999)];
        group.bench_function(format!("lookup 32 x 128, {name}"), |bencher| {
            bencher.iter(|| index.lookup(black_box(&prompt), &endpoints, &mut matched));
        });
        group.bench_function(format!("insert 128, {name}"), |bencher| {
            bencher.iter(|| index.insert(black_box(&prompt), EndpointId(7), 10_000));
        });
    }
}

criterion_group!(benches, bodies, index);
criterion_main!(benches);
