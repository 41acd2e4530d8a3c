//! What the answers of real servers say of their tokens, read in pieces of every size, against a reading as a whole.

use std::{env, fs, path::PathBuf};

use endpoint_picker::usage::{Framing, Usage, UsageReader};
use serde_json::Value;

#[test]
fn captured_answers_tell_the_same_however_they_are_split() {
    let shared = env::var_os("ENDPOINT_PICKER_SHARED")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared"), PathBuf::from);
    let Ok(files) = fs::read_dir(shared.join("data/api")) else {
        println!("skipped: no shared data directory");
        return;
    };
    let (mut told, mut cached, mut untold) = (0, 0, 0);
    for file in files {
        let text = fs::read_to_string(file.unwrap().path()).unwrap();
        for exchange in text.split("### ").skip(1) {
            let (title, exchange) = exchange.split_once('\n').unwrap();
            let (headers, body): (Vec<_>, Vec<_>) =
                exchange.lines().partition(|line| line.starts_with('<') || line.starts_with('>'));
            let media_type = headers.iter().find_map(|line| {
                let (name, value) = line.strip_prefix("< ")?.split_once(": ")?;
                name.eq_ignore_ascii_case("content-type").then_some(value)
            });
            let framing = media_type.and_then(|media_type| Framing::of_headers(media_type.as_bytes(), None));
            let Some(framing) = framing else { continue };
            let body = body.join("\n");
            let expected = expected(framing, &body);
            for size in (1..70).chain([1024, usize::MAX]) {
                let mut reader = UsageReader::new(framing);
                body.as_bytes().chunks(size).for_each(|chunk| reader.push(chunk));
                assert!(reader.first_token_seen(), "{title}");
                let usage = reader.finish();
                assert_eq!(Usage { events: 0, ..usage }, expected, "{title} in pieces of {size}");
                if let (Framing::EventStream, Some(output)) = (framing, usage.output_tokens) {
                    // An engine's last token may be one without text.
                    assert!(output.abs_diff(usage.events) <= 1, "{title}: {output} tokens, {} events", usage.events);
                }
            }
            told += u32::from(expected.output_tokens.is_some());
            cached += u32::from(expected.cached_tokens.is_some_and(|tokens| tokens > 0));
            untold += u32::from(framing == Framing::EventStream && expected.output_tokens.is_none());
        }
    }
    assert!(
        told > 40 && cached > 10 && untold > 1,
        "{told} told their usage, {cached} were cached, {untold} told nothing"
    );
}

/// By looking at the documents as a whole, in the order of the stream.
fn expected(framing: Framing, body: &str) -> Usage {
    let documents: Vec<Value> = match framing {
        Framing::Json => serde_json::from_str(body).into_iter().collect(),
        Framing::EventStream => {
            let data = body.lines().filter_map(|line| line.strip_prefix("data: "));
            data.filter_map(|data| serde_json::from_str(data).ok()).collect()
        }
    };
    let last = |fields: &[&str]| {
        let counts = documents.iter().flat_map(|document| {
            ["", "/response", "/message"].into_iter().flat_map(move |place| {
                fields.iter().filter_map(move |field| document.pointer(&format!("{place}/usage/{field}"))?.as_u64())
            })
        });
        counts.last().map(|count| count as u32)
    };
    let read = last(&["cache_read_input_tokens"]);
    let apart = read.unwrap_or(0) + last(&["cache_creation_input_tokens"]).unwrap_or(0);
    Usage {
        prompt_tokens: last(&["prompt_tokens"]).or(last(&["input_tokens"]).map(|tokens| tokens + apart)),
        cached_tokens: last(&["prompt_tokens_details/cached_tokens", "input_tokens_details/cached_tokens"]).or(read),
        output_tokens: last(&["completion_tokens", "output_tokens"]),
        events: 0,
    }
}
