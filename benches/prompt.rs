//! What a request costs before it is scheduled: reading its body, and asking and updating the prefix index.
#![allow(missing_docs, clippy::indexing_slicing)]

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use endpoint_picker::id::EndpointId;
use endpoint_picker::prefix::{Cache, Index};
use endpoint_picker::prompt::{Blocks, Chain, Dialect, read};
use endpoint_picker::store::Memory;

/// A chat of `size` bytes: a system prompt, then turns of some lines each. English prose and code have 10 to 27 line ends
/// and about 4 quotation marks in a thousand characters; this has 13 and 4.
fn chat(size: usize) -> Vec<u8> {
    let plain = r"The quick brown fox jumps over the lazy dog, and then says good bye to it.\n";
    let quoted = r#"The quick brown fox jumps over the lazy dog, and then says \"bye\" to it.\n"#;
    let text = format!("{0}{0}{1}{0}{0}{0}", plain, quoted);
    let mut body = br#"{"model":"m","stream":true,"messages":[{"role":"system","content":"You are helpful."}"#.to_vec();
    while body.len() + 1000 < size {
        for role in ["user", "assistant"] {
            let message = format!(r#",{{"role":"{role}","content":"{text}"}}"#);
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
    for (name, common) in [("a quarter shared by all", 32), ("all shared by all", 128)] {
        let (store, index) = (Memory::default(), Index::new("bench", 200_000));
        let mut caches: Vec<_> =
            (0..32).map(|id| Cache { endpoint: EndpointId(id), clock: 0, capacity: 10_000 }).collect();
        for own in 1..1000 {
            let prompt = [chain(common, own)];
            let at = own as usize % 32;
            let lookup = index.lookup(&store, &prompt, &caches);
            let advance = index.advance(&lookup, &prompt, &caches[at]);
            index.insert(&store, &lookup, &prompt, caches[at], &advance, &caches);
            caches[at].clock += advance[0];
        }
        let prompt = [chain(common, 999)];
        group.bench_function(format!("lookup 32 x 128, {name}"), |bencher| {
            bencher.iter(|| index.lookup(&store, black_box(&prompt), &caches));
        });
        let lookup = index.lookup(&store, &prompt, &caches);
        let advance = index.advance(&lookup, &prompt, &caches[7]);
        group.bench_function(format!("insert 128, {name}"), |bencher| {
            bencher.iter(|| index.insert(&store, &lookup, black_box(&prompt), caches[7], &advance, &caches));
        });
    }
}

criterion_group!(benches, bodies, index);
criterion_main!(benches);
