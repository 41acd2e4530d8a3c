use super::*;

const DIALECTS: [Dialect; 6] = [
    Dialect::ChatCompletions,
    Dialect::Completions,
    Dialect::Responses,
    Dialect::Embeddings,
    Dialect::Messages,
    Dialect::Generate,
];

#[test]
fn p30_what_is_no_request_gives_an_empty_prompt() {
    for body in [
        "",
        " ",
        "null",
        "[]",
        "[{}]",
        "5",
        "\"x\"",
        "hello",
        "--boundary\r\nContent-Disposition: form-data",
        "}{",
        "{",
        "{}",
    ] {
        for dialect in DIALECTS {
            let prompt = Prompt { max_output_tokens: None, ..fine(dialect, body) };
            assert_eq!(prompt, Prompt::default(), "{body}");
        }
    }
}

#[test]
fn p30_wrong_types_leave_out_only_what_is_wrong() {
    let prompt = completions(r#"{"model":5,"prompt":"hello world","max_tokens":"7","stream":1}"#);
    assert_eq!((prompt.model, prompt.max_output_tokens, prompt.stream), (None, None, false));
    assert_eq!(prompt.tokens, 3);
    for value in [
        "5",
        "true",
        "\"x\"",
        "{}",
        "[]",
        "[[[]]]",
        "{\"role\":{}}",
        "[5,null,{\"role\":[1],\"content\":{\"a\":5}},[]]",
        "[\"\"]",
    ] {
        for dialect in DIALECTS {
            let body = [
                "model",
                "messages",
                "prompt",
                "input",
                "system",
                "tools",
                "text",
                "input_ids",
                "stream",
                "max_tokens",
                "sampling_params",
                "cache_salt",
                "lora_path",
                "image_data",
            ]
            .map(|key| format!("\"{key}\":{value}"))
            .join(",");
            let prompt = fine(dialect, format!("{{{body}}}"));
            assert!(prompt.tokens < 400, "{value}");
        }
    }
}

#[test]
fn of_a_repeated_key_the_last_one_counts() {
    assert_eq!(
        completions(r#"{"model":"a","model":"b","prompt":"one","prompt":"two and three"}"#),
        completions(r#"{"model":"b","prompt":"two and three"}"#)
    );
}

#[test]
fn malformed_json_gives_what_could_be_understood() {
    for body in [
        r#"{"model":"m" "prompt":"hello world"}"#,
        r#"{"model":"m",,,"prompt":"hello world",}"#,
        r#"{"model":"m",5,"x":,"y","prompt" : "hello world"]"#,
        r#"{'a':1,"model":"m",:::"prompt":"hello world"}}}}"#,
    ] {
        let prompt = completions(body);
        assert_eq!(prompt.model.as_deref(), Some(&b"m"[..]), "{body}");
        assert_eq!(prompt.tokens, 3, "{body}");
    }
}

#[test]
fn nesting_however_deep_is_no_trouble() {
    for (depth, open, close) in [
        (200, "[", "]"),
        (100_000, "[", "]"),
        (20_000, r#"{"content":"#, "}"),
        (5_000, r#"[{"type":"tool_result","content":"#, "}]"),
        (5_000, r#"{"role":"user","content":["#, "]}"),
        (5_000, r#"{"tool_calls":[{"function":"#, "}]}"),
    ] {
        let value = format!("{}1{}", open.repeat(depth), close.repeat(depth));
        for (dialect, key) in [
            (Dialect::ChatCompletions, "messages"),
            (Dialect::ChatCompletions, "tools"),
            (Dialect::Messages, "system"),
            (Dialect::Completions, "prompt"),
            (Dialect::Responses, "input"),
            (Dialect::Generate, "text"),
        ] {
            let body = format!(r#"{{"model":"m","{key}":[{value}],"stream":true}}"#);
            let prompt = read(dialect, body.as_bytes(), None, &Blocks::default());
            assert!(prompt.stream && prompt.model.is_some(), "what comes after is still read");
            read(dialect, &body.as_bytes()[..body.len() / 3], None, &Blocks::default());
        }
    }
}

#[test]
fn three_megabytes_are_read_and_stay_small() {
    let text = "lorem ipsum ".repeat(250_000);
    let prompt = read(Dialect::Completions, format!(r#"{{"prompt":"{text}"}}"#).as_bytes(), None, &Blocks::default());
    assert_eq!((prompt.blocks(), prompt.tokens), (2048, 750_000));
    for filler in ["[", "{", "\"", "\\", "1,", "\"\",", "[],", "{},", "\u{0}"] {
        let body = format!(r#"{{"prompt":[{}"#, filler.repeat(300_000 / filler.len()));
        let prompt = read(Dialect::Completions, body.as_bytes(), None, &Blocks::default());
        assert!(prompt.blocks() <= 2048 && prompt.chains.len() <= 2048, "{filler}");
        read(Dialect::ChatCompletions, body.replace("prompt", "messages").as_bytes(), None, &Blocks::default());
    }
}

#[test]
fn long_names_are_not_kept() {
    let named = |length: usize| completions(format!(r#"{{"model":"{}","prompt":"x"}}"#, "m".repeat(length))).model;
    assert_eq!(named(1024).map(|model| model.len()), Some(1024));
    assert_eq!(named(1025), None);
    assert_eq!(named(0), None);
}

#[test]
fn p53_characters_across_a_block_boundary_are_bytes_like_any_other() {
    let blocks = Blocks { tokens: 4, max: 64, seed: 0, openings: false };
    for before in 0..40 {
        let text = format!("{}漢字 and more text to fill the block", "x".repeat(before));
        let plain = read(Dialect::Completions, format!(r#"{{"prompt":"{text}"}}"#).as_bytes(), None, &blocks);
        assert_eq!(plain.blocks(), text.len() / 16);
        let escaped = text.replace('漢', "\\u6f22").replace('字', "\\u5b57");
        assert_eq!(read(Dialect::Completions, format!(r#"{{"prompt":"{escaped}"}}"#).as_bytes(), None, &blocks), plain);
    }
}

#[test]
fn p53_text_that_is_not_utf8_is_hashed_and_told_apart() {
    let with = |bytes: &[u8]| completions([br#"{"prompt":"abc"#, bytes, br#" and so on"}"#].concat());
    let texts: [&[u8]; 8] =
        [b"", b"\xff", b"\xff\xff", b"\xfe", b"\xe6\xbc", b"\\ud800", b"\\udc00", b"\\ud800\\u0041"];
    for (i, one) in texts.iter().enumerate() {
        assert!(with(one).blocks() >= 3);
        for other in &texts[i + 1..] {
            assert_ne!(with(one), with(other), "{} {}", one.escape_ascii(), other.escape_ascii());
        }
    }
    assert_eq!(with(b"\\ud83d\\ude00"), with("😀".as_bytes()));
}

#[test]
fn escapes_that_are_none_are_text() {
    let with = |text: &str| completions(format!(r#"{{"prompt":"{text} and so on"}}"#));
    for text in ["\\x", "\\u12", "\\uzzzz", "\\ud800\\uzzzz", "\\u"] {
        assert!(with(text).blocks() >= 2, "{text}");
    }
    assert_ne!(with("\\x"), with("x"));
}
