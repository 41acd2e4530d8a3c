use std::time::Instant;

use super::*;
use crate::usage::Framing;

/// The server's name, and the client's.
const TARGET: &str = "org/llama-7b";
const MODEL: &str = "gpt \"4\"";

/// In a sample `<T>` is the server's name, and `<M>` the place where the client's shall be.
fn filled(sample: &str, name: &str) -> String {
    let name = String::from_utf8(quoted(name.as_bytes())).unwrap();
    sample.replace("<M>", &name).replace("<T>", &format!("\"{TARGET}\""))
}

fn in_parts<'a>(framing: Framing, parts: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut restorer = Restorer::new(framing, TARGET.as_bytes(), MODEL.as_bytes());
    let mut out = Vec::new();
    for part in parts {
        let restored = restorer.push(part);
        out.extend(restored.as_deref().unwrap_or(part));
        assert!(restorer.held.len() <= 6 * TARGET.len() + 2);
    }
    out.extend(restorer.finish());
    out
}

/// Restores a text whole, and divided everywhere.
fn restored(framing: Framing, text: &[u8]) -> Vec<u8> {
    let whole = in_parts(framing, [text]);
    for at in 0..=text.len() {
        let (one, other) = text.split_at(at);
        assert_eq!(in_parts(framing, [one, other]), whole, "divided at {at}");
    }
    for size in 1..8 {
        assert_eq!(in_parts(framing, text.chunks(size)), whole, "in parts of {size}");
    }
    whole
}

#[track_caller]
fn check(framing: Framing, sample: &str) {
    let given = filled(sample, TARGET);
    let out = String::from_utf8(restored(framing, given.as_bytes())).unwrap();
    assert_eq!(out, filled(sample, MODEL));
}

const JSON: [&str; 9] = [
    // OpenAI chat completions, completions, embeddings.
    r#"{"id":"c1","object":"chat.completion","created":1,"model":<M>,"choices":[{"index":0,"message":{"role":"assistant",
       "content":"I am \"model\":\"org/llama-7b\" \\","tool_calls":[{"function":{"name":"f","arguments":"{\"model\":\"org/llama-7b\"}"}}]}}],
       "usage":{"prompt_tokens":5,"model":<T>}}"#,
    r#"{"object":"text_completion", "model" : <M> ,"choices":[{"text":<T>,"model":<T>}]}"#,
    r#"{"object":"list","data":[{"embedding":[0.5,-1e-3,2]},{"model":<T>}],"model":<M>,"usage":null}"#,
    // OpenAI responses.
    r#"{"object":"response","model":<M>,"output":[{"type":"function_call","model":<T>,"arguments":"{\"model\": \"org/llama-7b\"}"}],
       "tools":[{"parameters":{"model":<T>}}],"metadata":{"model":<T>},"text":{"model":<T>}}"#,
    // Anthropic messages.
    r#"{"type":"message","role":"assistant","model":<M>,"content":[{"type":"tool_use","input":{"model":<T>,
       "message":{"model":<T>}}}],"stop_reason":null}"#,
    // Written otherwise, more than once, or in several texts.
    "{\"model\":\n\t <M>,\"x\":\"org/llama-7b\",\"model\":<M>}\n{\"model\":<M>}",
    // Another name, or none.
    r#"{"model":"org/llama-7b-chat"} {"model":"org/llama"} {"model":""} {"model":null} {"model":5} {"model":[<T>]}
       {"model":{"model":<T>}} {"a":<T>,"b":"model","c":<T>} [<T>,{"model":<T>},"model",<T>] <T> "model":<T>"#,
    // An error of a server that does not know the name: where it stands in a text it stays.
    r#"{"object":"error","message":"The model `org/llama-7b` does not exist.","param":"model","code":404}"#,
    // Objects of the same names at other places.
    r#"{"message":[{"model":<T>}],"response":{"x":{"model":<T>},"model":<M>},"x":{"response":{"model":<T>}}}"#,
];

#[test]
fn the_name_is_put_back_in_a_json_body_however_it_is_cut() {
    JSON.iter().for_each(|sample| check(Framing::Json, sample));
}

#[test]
fn the_name_is_put_back_in_a_stream_however_it_is_cut() {
    for sample in [
        // OpenAI chat completions.
        "data: {\"id\":\"c1\",\"model\":<M>,\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n\
         : keep-alive \"model\":<T>\n\n\
         data: {\"model\":<M>,\"choices\":[{\"delta\":{\"content\":\"\\\"model\\\":\\\"org/llama-7b\\\"\"}}]}\r\n\r\n\
         data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{\"arguments\":\"model\"}}],\"model\":<T>}}],\"model\":<M>}\n\n\
         data: [DONE]\n\n",
        // OpenAI responses.
        "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"id\":\"r\",\"model\":<M>,\"output\":[]}}\n\n\
         event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":<T>,\"item\":{\"model\":<T>}}\n\n\
         data: {\"response\":{\"output\":[{\"content\":[{\"text\":<T>}],\"model\":<T>}],\"model\":<M>},\"model\":<M>}\n\n",
        // Anthropic messages.
        "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"content\":[],\"usage\":{\"input_tokens\":1},\"model\":<M>}}\n\n\
         event: ping\ndata: {\"type\": \"ping\"}\n\n\
         data: {\"type\":\"content_block_start\",\"content_block\":{\"type\":\"tool_use\",\"model\":<T>,\"input\":{}}}\n\n\
         data: {\"type\":\"content_block_delta\",\"delta\":{\"partial_json\":\"{\\\"model\\\":\\\"org/llama-7b\\\"}\"}}\n\n",
        // Every way to write lines; one event in several.
        "\u{feff}data:{\"model\":<M>}\r\rdata:{\"model\":\r\ndata:<M>}\n\ndata: {\"model\"\ndata: :<M>}\n\ndata: {\"model\":<M>}",
        // What an event leaves open is not the next one's; a line's end is in no name.
        "data: {\"model\":\n\ndata: <T>\n\ndata: {\"x\":[\n\ndata: {\"model\":<M>}\n\n\
         data: {\"model\":\"org/\ndata: llama-7b\"}\n\ndata: {\"model\":\"org/lla\n\nevent: {\"model\":<T>}\ndatum: {\"model\":<T>}\n\n",
    ] {
        check(Framing::EventStream, sample);
    }
    for sample in JSON.iter().filter(|sample| !sample.contains("\n")) {
        check(Framing::EventStream, &format!("data: {sample}\n\n"));
    }
}

#[test]
fn a_name_is_known_however_it_is_escaped() {
    for name in [
        r"org\/llama-7b",
        r"\u006frg/llama-7b",
        r"\u006f\u0072\u0067\u002f\u006c\u006c\u0061\u006d\u0061\u002d\u0037\u0062",
    ] {
        let out = restored(Framing::Json, format!(r#"{{"model":"{name}"}}"#).as_bytes());
        assert_eq!(out, filled("{\"model\":<M>}", MODEL).as_bytes(), "{name}");
    }
    for name in [r"org/llama-7b\", r"org/llama-7b\u", r"\org/llama-7b", r"org/llama-7\u0062\u0000"] {
        let text = format!(r#"{{"model":"{name}"}}"#);
        assert_eq!(restored(Framing::Json, text.as_bytes()), text.as_bytes());
    }
}

#[test]
fn an_answer_without_a_name_to_put_back_is_not_touched() {
    let mut restorer = Restorer::new(Framing::Json, TARGET.as_bytes(), MODEL.as_bytes());
    for part in [&b"{\"choices\":[{\"model\":"[..], b"\"org/llama-7b\"}],\"model\"", b":  ", b"", b"7}"] {
        assert_eq!(restorer.push(part), None);
    }
}

#[test]
fn what_is_no_json_passes_as_it_is() {
    let deep = "[".repeat(300) + "{\"model\":\"org/llama-7b\"}";
    for text in [
        "",
        "\0\u{1}",
        "<html>\"model\":\"org/llama-7b\"</html>",
        "}}]]\"model\":\"org/llama-7b\"",
        &deep,
        "{\"model\":\"org/llama-7b",
        "{\"model\":nul\"org/llama-7b\"}",
        "{\"model\" \"org/llama-7b\"}",
        "{\"model\":-\"org/llama-7b\"}",
        "{\"model\":1\"org/llama-7b\"}",
        "{\"model\":\"x\"\"org/llama-7b\"}",
    ] {
        assert_eq!(restored(Framing::Json, text.as_bytes()), text.as_bytes(), "{text}");
    }
    let noise: Vec<u8> = (0..2000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    for framing in [Framing::Json, Framing::EventStream] {
        assert_eq!(restored(framing, &noise), noise);
    }
}

/// Texts that are nearly right give the same however they are split.
#[test]
fn random_texts_give_the_same_however_they_are_split() {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut below = |limit: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % limit
    };
    let pieces = [
        "{",
        "}",
        "[",
        ":",
        ",",
        "\"",
        "\\",
        " ",
        "\n",
        "\r",
        "\n\n",
        "data:",
        "data: {",
        "\"model\"",
        "\"model\":",
        "\"org/llama-7b\"",
        "{\"model\":\"org/llama-7b\"",
        "\"org/",
        "llama-7b\"",
        "\"message\":{",
        "\"response\":{",
        "12",
        "null",
        "\u{feff}",
        "\x0c",
        "\\u006f",
    ];
    let mut replaced = 0;
    for _ in 0..300 {
        let text: String = (0..30).map(|_| pieces[below(pieces.len())]).collect();
        for framing in [Framing::Json, Framing::EventStream] {
            replaced += usize::from(restored(framing, text.as_bytes()) != text.as_bytes());
        }
    }
    assert!(replaced > 20, "{replaced} had a name to put back");
}

/// The value that a parser finds is the one that it would have found, but for the names.
#[test]
fn random_json_is_restored_where_a_parser_finds_the_name() {
    use serde_json::{Value, json};
    let mut state = 7_u64;
    let mut below = |limit: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % limit
    };
    fn random(below: &mut impl FnMut(u64) -> u64, depth: u32) -> Value {
        const KEYS: [&str; 5] = ["model", "message", "response", "choices", "x\"model"];
        match below(if depth > 4 { 4 } else { 8 }) {
            0 => json!(TARGET),
            1 => json!("\"model\":\"org/llama-7b\""),
            2 => json!(below(1000)),
            3 => Value::Null,
            4 => (0..below(4)).map(|_| random(below, depth + 1)).collect(),
            _ => (0..below(5)).map(|_| (KEYS[below(5) as usize].to_owned(), random(below, depth + 1))).collect(),
        }
    }
    for _ in 0..200 {
        let mut value = random(&mut below, 0);
        let text = if below(2) == 0 { value.to_string() } else { format!("{value:#}") };
        let out = restored(Framing::Json, text.as_bytes());
        for pointer in ["/model", "/response/model", "/message/model"] {
            let parent = pointer.strip_suffix("/model").unwrap();
            let in_object = value.is_object() && value.pointer(parent).is_some_and(Value::is_object);
            if let Some(name) = value.pointer_mut(pointer).filter(|name| in_object && **name == TARGET) {
                *name = json!(MODEL);
            }
        }
        assert_eq!(serde_json::from_slice::<Value>(&out).unwrap(), value, "{text}");
    }
}

#[test]
fn hostile_answers_cost_neither_memory_nor_patience() {
    for unit in ["[", "{\"model\":", "{\"model\":\"", "\"", "data: {\"model\":\"", "\r", "\\", "{\"response\":{", " "] {
        for framing in [Framing::Json, Framing::EventStream] {
            let text = format!("{{\"model\":{}", unit.repeat(100_000));
            let start = Instant::now();
            assert_eq!(in_parts(framing, text.as_bytes().chunks(16_384)), text.as_bytes());
            assert!(start.elapsed().as_secs() < 5, "{unit}");
        }
    }
}
