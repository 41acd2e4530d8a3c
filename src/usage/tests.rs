use std::time::Instant;

use super::*;

fn told(prompt: u32, cached: impl Into<Option<u32>>, output: u32) -> Usage {
    Usage { prompt_tokens: Some(prompt), cached_tokens: cached.into(), output_tokens: Some(output), events: 0 }
}

/// Reads a text whole, by single bytes, and in two parts divided anywhere.
fn read(framing: Framing, text: impl AsRef<[u8]>) -> Usage {
    let text = text.as_ref();
    let in_parts = |parts: &mut dyn Iterator<Item = &[u8]>| {
        let mut reader = UsageReader::new(framing);
        parts.for_each(|part| reader.push(part));
        reader.finish()
    };
    let whole = in_parts(&mut [text].into_iter());
    assert_eq!(in_parts(&mut text.chunks(1)), whole, "by single bytes");
    for at in 0..text.len().min(4000) {
        let (one, other) = text.split_at(at);
        assert_eq!(in_parts(&mut [one, other].into_iter()), whole, "divided at {at}");
    }
    whole
}

fn json(text: impl AsRef<[u8]>) -> Usage {
    read(Framing::Json, text)
}

/// A stream of these data lines.
fn stream(events: &[&str]) -> Usage {
    read(Framing::EventStream, events.iter().map(|data| format!("data: {data}\n\n")).collect::<String>())
}

const ROLE: &str = r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}],"usage":null}"#;
const WORD: &str = r#"{"choices":[{"index":0,"delta":{"content":"word"}}],"usage":null}"#;
const STOP: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":null}"#;

#[test]
fn a_json_body_of_each_dialect_tells_its_usage() {
    let chat = r#"{"choices":[{"message":{"content":"hi"}}],"usage":{"prompt_tokens":385,"total_tokens":393,
        "completion_tokens":8,"prompt_tokens_details":{"cached_tokens":352},"completion_tokens_details":null}}"#;
    assert_eq!(json(chat), told(385, 352, 8));
    let responses = r#"{"output":[{"content":[{"text":"hi"}]}],"usage":{"input_tokens":11,"input_tokens_details":
        {"cached_tokens":10},"output_tokens":4,"output_tokens_details":{"reasoning_tokens":1},"total_tokens":15}}"#;
    assert_eq!(json(responses), told(11, 10, 4));
    let generate = r#"{"text":"hi","meta_info":{"id":"a","finish_reason":{"type":"length","length":7},
        "prompt_tokens":20,"completion_tokens":7,"cached_tokens":16,"e2e_latency":0.25}}"#;
    assert_eq!(json(generate), told(20, 16, 7));
    let embeddings = r#"{"data":[{"embedding":[0.5,-1e-3]}],"usage":{"prompt_tokens":9,"total_tokens":9}}"#;
    assert_eq!(json(embeddings), Usage { prompt_tokens: Some(9), ..Usage::default() });
}

#[test]
fn anthropics_prompt_is_what_was_read_from_the_cache_and_what_was_not() {
    let body = r#"{"type":"message","usage":{"cache_read_input_tokens":10,"cache_creation_input_tokens":5,
        "cache_creation":{"input_tokens":7},"input_tokens":1,"output_tokens":4}}"#;
    assert_eq!(json(body), told(16, 10, 4));
}

#[test]
fn several_answers_of_generate_are_summed() {
    let one = r#"{"text":"a","meta_info":{"prompt_tokens":20,"completion_tokens":7,"cached_tokens":16}}"#;
    let other = r#"{"text":"b","meta_info":{"prompt_tokens":2,"completion_tokens":3}}"#;
    assert_eq!(json(format!("[{one}, {other}]")), told(22, 16, 10));
}

#[test]
fn p18_null_is_no_usage_and_events_are_the_estimate() {
    let usage = stream(&[ROLE, WORD, WORD, STOP, "[DONE]"]);
    assert_eq!(usage, Usage { events: 2, ..Usage::default() });
}

#[test]
fn p18_usage_so_far_in_each_chunk_is_counted_once() {
    let chunk = |output: u32| {
        format!(
            r#"{{"choices":[{{"delta":{{"content":"w"}}}}],"usage":{{"prompt_tokens":385,"completion_tokens":{output}}}}}"#
        )
    };
    let last = r#"{"choices":[],"usage":{"prompt_tokens":385,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":384}}}"#;
    let usage = stream(&[&chunk(1), &chunk(2), &chunk(3), last, "[DONE]"]);
    assert_eq!(usage, Usage { events: 3, ..told(385, 384, 3) });
}

#[test]
fn p18_a_last_chunk_without_choices_tells_the_usage() {
    let usage = stream(&[ROLE, WORD, STOP, r#"{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":1}}"#]);
    assert_eq!(usage, Usage { events: 1, ..told(5, None, 1) });
}

#[test]
fn p62_usage_in_two_events_is_merged() {
    let start = r#"{"type":"message_start","message":{"usage":{"input_tokens":25,"cache_read_input_tokens":3,"output_tokens":1}}}"#;
    let block = r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"none of it"}}"#;
    let text = r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"ang"}}"#;
    let delta = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}}"#;
    let usage = stream(&[start, block, text, r#"{"type":"ping"}"#, text, delta, r#"{"type":"message_stop"}"#]);
    assert_eq!(usage, Usage { events: 2, ..told(28, 3, 9) });
}

#[test]
fn p65_the_last_event_of_a_response_tells_its_usage() {
    let created = r#"{"type":"response.created","response":{"output":[],"usage":null}}"#;
    let text = r#"{"type":"response.output_text.delta","delta":"suit","logprobs":[]}"#;
    let done = r#"{"type":"response.output_text.done","text":"suitsuit"}"#;
    let completed = r#"{"response":{"output":[{"content":[{"text":"suitsuit"}]}],"usage":{"input_tokens":11,
        "output_tokens":2,"input_tokens_details":{"cached_tokens":10}}},"type":"response.completed"}"#
        .replace('\n', "");
    let usage = stream(&[created, text, text, done, &completed]);
    assert_eq!(usage, Usage { events: 2, ..told(11, 10, 2) });
}

#[test]
fn reasoning_and_tool_calls_are_output_too() {
    let events = [
        r#"{"choices":[{"delta":{"reasoning_content":"hm"}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{\"a"}}]}}]}"#,
        r#"{"choices":[{"index":0,"text":"legacy"}]}"#,
        r#"{"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":"hm"}}"#,
    ];
    assert_eq!(stream(&events).events, 4);
}

#[test]
fn text_that_looks_like_usage_fools_nobody() {
    let word =
        r#"{"choices":[{"delta":{"content":"\"usage\": {\"prompt_tokens\": 1, \"completion_tokens\": 999}} \\"}}]}"#;
    let call =
        r#"{"choices":[{"delta":{"usage":{"completion_tokens":999}}}],"metadata":{"usage":{"completion_tokens":999}}}"#;
    let last = r#"{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2}}"#;
    let usage = stream(&[last, word, call]);
    assert_eq!(usage, Usage { events: 1, ..told(5, None, 2) });
    let tool = r#"{"content":[{"type":"tool_use","input":{"usage":{"input_tokens":999}}}],
        "usage":{"input_tokens":7,"output_tokens":2,"server_tool_use":{"output_tokens":999}}}"#;
    assert_eq!(json(tool), told(7, None, 2));
    assert_eq!(json(r#"["usage",{"a":"usage"},"usage",[{"usage":{"prompt_tokens":9}}]]"#), Usage::default());
}

#[test]
fn only_counts_count() {
    let with = |count: &str| json(format!(r#"{{"usage":{{"prompt_tokens":{count},"completion_tokens":1}}}}"#));
    for count in ["null", "-5", "\"5\"", "true", "1e9", "[5]", "{\"a\":5}", "", "5x", "5.5e1"] {
        assert_eq!(with(count), Usage { prompt_tokens: None, ..told(0, None, 1) }, "{count}");
    }
    assert_eq!(with("5.9"), told(5, None, 1));
    assert_eq!(with(" 5 "), told(5, None, 1));
    assert_eq!(with("99999999999999999999"), told(u32::MAX, None, 1));
    let sum = r#"{"usage":{"input_tokens":4294967295,"cache_read_input_tokens":4294967295,"output_tokens":1}}"#;
    assert_eq!(json(sum), told(u32::MAX, u32::MAX, 1));
}

#[test]
fn the_answer_may_break_off_anywhere() {
    let whole = r#"{"choices":[],"usage":{"prompt_tokens":385,"completion_tokens":12}}"#;
    assert_eq!(json(&whole.as_bytes()[..whole.len() - 3]), Usage { prompt_tokens: Some(385), ..Usage::default() });
    let usage = stream(&[r#"{"choices":[{"delta":{"content":"wo"#, r#"{"choices":[{"usa"#, whole]);
    assert_eq!(usage, told(385, None, 12));
}

#[test]
fn every_way_to_write_an_event_is_understood() {
    let usage = Usage { events: 1, ..told(3, None, 1) };
    for text in [
        "data: A\n\ndata: B\n\n",
        "data:A\n\ndata:B\n\n",
        "data: A\r\n\r\ndata: B\r\n\r\n",
        "data: A\r\rdata: B\r\r",
        "\u{feff}data: A\n\ndata: B\n\n",
        ": keep-alive\n\nevent: x\nid: 7\ndata: A\nretry: 5\n\nevent: data: A\ndata: B\n\n",
        "data: A\ndata: B\n",
        "data: A\n\ndata: {\r\ndata: \"choices\"\r\ndata: :[],\"usage\":{\"prompt_tokens\":3\ndata: ,\"completion_tokens\":1}}\n\n",
        "dat: A\ndatax: A\n data: A\ndata\n\ndata: A\n\ndata: B",
    ] {
        let text = text.replace('A', WORD).replace('B', r#"{"usage":{"prompt_tokens":3,"completion_tokens":1}}"#);
        assert_eq!(read(Framing::EventStream, &text), usage, "{text}");
    }
}

#[test]
fn the_first_chunk_of_a_chat_is_the_first_token_though_it_has_no_text() {
    let mut reader = UsageReader::new(Framing::EventStream);
    reader.push(b": hello\n\ndata: ");
    assert!(!reader.first_token_seen());
    reader.push(ROLE.as_bytes());
    assert!(reader.first_token_seen());
    assert_eq!(reader.finish().events, 0, "no output, though");
}

#[test]
fn neither_an_announcement_nor_an_error_is_a_first_token() {
    let seen = |data: &str| {
        let mut reader = UsageReader::new(Framing::EventStream);
        reader.push(format!("data: {data}\n\n").as_bytes());
        reader.first_token_seen()
    };
    for data in [
        r#"{"type":"response.created","response":{}}"#,
        r#"{"response":{"type":"x"},"sequence_number":1,"type":"response.in_progress"}"#,
        r#"{"type":"ping"}"#,
        r#"{"error":{"message":"overloaded"}}"#,
        r#"{"error":"overloaded"}"#,
        "[DONE]",
        "[]",
        "",
    ] {
        assert!(!seen(data), "{data}");
    }
    for data in [WORD, r#"{"error":null,"choices":[]}"#, r#"{"type":"message_start"}"#, r#"{"token":{"text":"a"}}"#] {
        assert!(seen(data), "{data}");
    }
}

#[test]
fn a_json_body_has_begun_when_its_first_byte_came() {
    let mut reader = UsageReader::new(Framing::Json);
    reader.push(b"");
    assert!(!reader.first_token_seen());
    reader.push(b"{");
    assert!(reader.first_token_seen());
    assert_eq!(json(r#"{"choices":[{"message":{"content":"x"}}]}"#), Usage::default(), "no events");
}

#[test]
fn p61_what_cannot_be_read_is_not_read() {
    let of = |media_type: &str| Framing::of_headers(media_type.as_bytes(), None);
    assert_eq!(of("text/event-stream; charset=utf-8"), Some(Framing::EventStream));
    assert_eq!(of("Application/JSON"), Some(Framing::Json));
    assert_eq!(of("text/html"), None);
    assert_eq!(of(""), None);
    assert_eq!(Framing::of_headers(b"application/json", Some(b"gzip")), None);
    assert_eq!(Framing::of_headers(b"application/json", Some(b"identity")), Some(Framing::Json));
}

#[test]
fn hostile_answers_cost_neither_memory_nor_patience() {
    let deep = ["[", "{\"a\":", "{\"choices\":[", "\"", "data: [", "data: {\"usage\":", "\r", "\\", "{\"usage\":{"];
    for unit in deep {
        for framing in [Framing::Json, Framing::EventStream] {
            let text = unit.repeat(200_000);
            let start = Instant::now();
            let mut reader = UsageReader::new(framing);
            text.as_bytes().chunks(16_384).for_each(|chunk| reader.push(chunk));
            assert!(reader.answer.is_small(), "{unit}");
            assert_eq!(reader.finish(), Usage::default(), "{unit}");
            assert!(start.elapsed().as_secs() < 5, "{unit}");
        }
    }
}

#[test]
fn closing_what_is_not_open_is_no_harm() {
    let usage = json(r#"}}]],,::"x"}{"usage":{"prompt_tokens":3,"completion_tokens":1}}]}"#);
    assert_eq!(usage, told(3, None, 1));
}

#[test]
fn random_bytes_give_the_same_however_they_are_split() {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut below = |limit: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % limit
    };
    let pieces = ["{", "}", "[", "]", ":", ",", "\"usage\"", "\"", "\\", "12", "null", "\n", "\r", "data:", "data: {"];
    let more =
        ["\"prompt_tokens\":", "\"choices\":[", "\"content\":\"x\"", "\"message\":{", "\u{feff}", "-", ".", "e", "\0"];
    let all = [&pieces[..], &more[..]].concat();
    for _ in 0..300 {
        let text: String = (0..40).map(|_| all[below(all.len())]).collect();
        json(&text);
        read(Framing::EventStream, &text);
    }
}
