//! Reading usage out of an answer: what a piece of it costs.

use std::hint::black_box;

use criterion::{Criterion, Throughput};
use endpoint_picker::usage::{Framing, UsageReader};

/// One token, as vLLM streams it.
const EVENT: &[u8] = br#"data: {"id":"chatcmpl-b2998d4ae3b226b3","object":"chat.completion.chunk","created":1796052463,"model":"m","choices":[{"index":0,"delta":{"content":" token"},"logprobs":null,"finish_reason":null,"token_ids":null}]}

"#;

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("usage");
    for (name, framing, piece) in [
        ("an event of a stream", Framing::EventStream, EVENT.to_vec()),
        ("16 KB of JSON text", Framing::Json, format!("\"{}\",", "word ".repeat(3276)).into_bytes()),
    ] {
        group.throughput(Throughput::Bytes(piece.len() as u64));
        let mut reader = UsageReader::new(framing);
        group.bench_function(name, |bencher| bencher.iter(|| reader.push(black_box(&piece))));
    }
    group.finish();
    criterion.final_summary();
}
