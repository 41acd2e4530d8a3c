use super::*;

/// Bodies with every construct, model and tools in front as most clients write them.
const BODIES: [(Dialect, &str); 11] = [
    (
        Dialect::ChatCompletions,
        r#"{"model":"m","tools":[{"type":"function","function":{"name":"f","n":12.5}}],"messages":[{"role":"system","content":"Be brief. \u00e9\ud83d\ude00\ud83d x"},{"role":"user","content":[{"type":"text","text":"one \ud83d\ude00"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}},{"type":"text","text":"two\n"}]},{"role":"assistant","content":null,"reasoning":"r","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]},{"role":"tool","tool_call_id":"1","content":"done"}],"stream":true}"#,
    ),
    (
        Dialect::ChatCompletions,
        r#"{"model":"m","messages":[{"content":"content first, as sorted keys have it","name":"n","role":"user"},{"role":"user","content":""},{"role":"user","content":[]},{"role":"user","name":"x","content":[{"text":"sorted","type":"text"}]}]}"#,
    ),
    (Dialect::Completions, r#"{"model":"m","prompt":["first prompt","second \u4e2d\u6587 prompt"],"max_tokens":7}"#),
    (Dialect::Completions, r#"{"model":"m","prompt":[[1,22,333,4444],[55555,666666]],"max_tokens":7}"#),
    (
        Dialect::Responses,
        r#"{"model":"m","instructions":"Be brief.","input":[{"role":"user","content":[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"http://x/y.png"}]},{"type":"function_call","call_id":"1","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"1","output":"ok"}]}"#,
    ),
    (
        Dialect::Messages,
        r#"{"model":"m","system":[{"type":"text","text":"x-anthropic-billing-header: 1"},{"type":"text","text":"Be brief."}],"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"a"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]},{"type":"text","text":"b"}]},{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"tool_use","id":"2","name":"f","input":{"x":[1,2]}}]}]}"#,
    ),
    (
        Dialect::Responses,
        r#"{"model":"m","instructions":"Be brief.","previous_response_id":"resp_1","input":[{"type":"custom_tool_call","id":"x","call_id":"1","name":"apply_patch","input":"*** Begin \"Patch\""},{"type":"local_shell_call","call_id":"2","status":"completed","action":{"type":"exec","command":["ls","-l"]}},{"zeta":"unknown","role":"user","content":"members","alpha":[1,2]},{"new":{"a":"b"}}]}"#,
    ),
    (
        Dialect::Responses,
        r#"{"model":"m","input":[{"type":"function_call","call_id":"1","name":"f","arguments":" {\"a\": \"b \\\" \\u00e9\", \"c\": [12, tru] x y}"},{"type":"function_call","call_id":"1","name":"f","arguments":"\\ no json"},{"role":"user","content":"go"}]}"#,
    ),
    (
        Dialect::Messages,
        r#"{"model":"m","messages":[{"role":"user","content":[{"content":"sunny","type":"tool_result","tool_use_id":"1","is_error":false},{"type":"tool_result","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}],"tool_use_id":"2"},{"type":"new","cache_control":{"type":"ephemeral"},"z":1,"a":"x"},{"type":"text","text":"b"}]}]}"#,
    ),
    (Dialect::Embeddings, r#"{"model":"m","input":"some text to embed"}"#),
    (
        Dialect::Generate,
        r#"{"model":"m","lora_path":"a","text":"some text to go on with","sampling_params":{"max_new_tokens":3}}"#,
    ),
];

#[test]
fn a_body_cut_at_any_byte_gives_the_first_blocks_of_the_whole() {
    for (dialect, body) in BODIES {
        let whole = fine(dialect, body);
        assert!(whole.blocks() > 3, "{body}");
        // Before the model is known there is nothing to agree with.
        let named = body.find(r#""a","#).or(body.find(',')).unwrap();
        for end in 0..body.len() {
            let part = fine(dialect, &body.as_bytes()[..end]);
            if end >= named {
                assert_prefix(&part, &whole, &String::from_utf8_lossy(&body.as_bytes()[..end]));
            }
            assert!(part.tokens <= whole.tokens + media::DEFAULT_TOKENS, "{dialect:?} at {end}");
        }
    }
}

#[test]
fn the_part_of_a_message_that_was_read_counts() {
    let body = format!(r#"{{"model":"m","messages":[{{"role":"user","content":"{}"}}]}}"#, "x".repeat(4000));
    let (part, whole) = (chat(&body.as_bytes()[..2100]), chat(&body));
    let read = 2100 - body.find("xxxx").unwrap();
    assert_eq!(part.blocks(), (6 + "user".len() + read) / 4, "all of it, and three marks of two bytes");
    assert_prefix(&part, &whole, &"half a message");
}

#[test]
fn a_long_body_whose_model_is_beyond_the_cut_matches_its_next_turn() {
    // The order in which OpenAI's own client writes: messages, then model and tools.
    let turn = |messages: usize| {
        let message = r#"{"role":"user","content":"something that was said"},"#.repeat(messages);
        format!(r#"{{"messages":[{message}{{}}],"model":"m","tools":[1,2]}}"#)
    };
    let (one, next) = (turn(100), turn(110));
    let (one, next) = (chat(&one.as_bytes()[..3000]), chat(&next.as_bytes()[..3000]));
    assert!(one.blocks() > 400);
    assert_eq!(one, next);
}

#[test]
fn random_documents_cut_anywhere_never_panic() {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let dialects = BODIES.map(|(dialect, _)| dialect);
    for round in 0..3000 {
        let mut body = Vec::new();
        if round % 2 == 0 {
            random.value(&mut body, 0);
        } else {
            // A real body with some bytes changed.
            body.extend_from_slice(BODIES[random.below(BODIES.len())].1.as_bytes());
            for _ in 0..=random.below(4) {
                let at = random.below(body.len());
                body[at] = *random.choose(br#"{}[]",:\0au"#);
            }
        }
        let end = random.below(body.len() + 1);
        for dialect in dialects {
            let prompt = fine(dialect, &body[..end]);
            assert!(prompt.blocks() as u64 <= u64::from(prompt.tokens) + 1);
        }
    }
}

#[test]
fn random_texts_hash_alike_however_they_are_escaped() {
    let mut random = Random(42);
    for _ in 0..500 {
        let text: String =
            (0..random.below(60)).map(|_| *random.choose(&['a', '"', '\\', '\n', '/', 'é', '漢', '😀'])).collect();
        let escape = |all: bool| {
            let mut escaped = String::new();
            for char in text.chars() {
                if all || matches!(char, '"' | '\\' | '\n') {
                    char.encode_utf16(&mut [0; 2]).iter().for_each(|unit| escaped += &format!("\\u{unit:04x}"));
                } else {
                    escaped.push(char);
                }
            }
            completions(format!(r#"{{"model":"m","prompt":"{escaped}and so on"}}"#))
        };
        assert_eq!(escape(true), escape(false), "{text:?}");
        assert_eq!(escape(true).tokens as usize, (text.len() + 9).div_ceil(4));
    }
}

/// xorshift64*, enough to make documents.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() >> 32) as usize % limit
    }

    fn choose<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    fn value(&mut self, out: &mut Vec<u8>, depth: usize) {
        const KEYS: [&str; 14] = [
            "model",
            "messages",
            "prompt",
            "input",
            "content",
            "role",
            "text",
            "tools",
            "tool_calls",
            "function",
            "system",
            "image_url",
            "type",
            "x",
        ];
        let kind = if depth == 0 { 0 } else { self.below(if depth > 5 { 4 } else { 7 }) + 2 };
        match kind {
            0 | 1 | 6 | 7 => {
                out.push(b'{');
                for _ in 0..self.below(5) + 1 {
                    out.extend_from_slice(format!("\"{}\":", self.choose(&KEYS)).as_bytes());
                    self.value(out, depth + 1);
                    out.push(b',');
                }
                out.push(b'}');
            }
            8 => {
                out.push(b'[');
                for _ in 0..self.below(5) {
                    self.value(out, depth + 1);
                    out.push(b',');
                }
                out.push(b']');
            }
            2 | 3 => {
                out.push(b'"');
                for _ in 0..self.below(30) {
                    out.extend_from_slice(
                        self.choose(&["a", "\\n", "\\u00e9", "\\ud800", "\\x", "é", "\\\"", "data:"]).as_bytes(),
                    );
                }
                out.push(b'"');
            }
            _ => {
                out.extend_from_slice(self.choose(&["1", "-2.5e3", "true", "null", "99999999999999999999"]).as_bytes())
            }
        }
    }
}
