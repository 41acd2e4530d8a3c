use super::*;

const CONVERSATION: &str = r#"{"model":"m","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Why is the sky blue?"}]}"#;

#[test]
fn paths_are_found_behind_a_prefix_and_before_a_query() {
    for (path, dialect) in [
        ("/v1/chat/completions", Some(Dialect::ChatCompletions)),
        ("/v1/completions", Some(Dialect::Completions)),
        ("/v1/responses", Some(Dialect::Responses)),
        ("/v1/embeddings", Some(Dialect::Embeddings)),
        ("/v1/messages", Some(Dialect::Messages)),
        ("/generate", Some(Dialect::Generate)),
        ("/team-a/v1/completions?x=/v1/messages", Some(Dialect::Completions)),
        ("/v1/messages?beta=true", Some(Dialect::Messages)),
        ("/v1/messages/count_tokens", None),
        ("/v1/models", None),
        ("/xgenerate", None),
        ("/x?/v1/completions", None),
        ("", None),
    ] {
        assert_eq!(Dialect::of_path(path.as_bytes()), dialect, "{path}");
    }
    assert_eq!(Dialect::of_path(b"\xff\xfe/v1/messages"), Some(Dialect::Messages));
}

#[test]
fn limits_and_switches_are_read_in_every_dialect() {
    let limit = |dialect, body: &str| fine(dialect, body).max_output_tokens;
    assert_eq!(limit(Dialect::ChatCompletions, r#"{"max_tokens":9,"max_completion_tokens":7}"#), Some(7));
    assert_eq!(limit(Dialect::Completions, r#"{"max_tokens":9}"#), Some(9));
    assert_eq!(limit(Dialect::Responses, r#"{"max_output_tokens":8}"#), Some(8));
    assert_eq!(limit(Dialect::Generate, r#"{"sampling_params":{"max_new_tokens":6}}"#), Some(6));
    assert_eq!(limit(Dialect::Generate, r#"{"parameters":{"max_new_tokens":5}}"#), Some(5));
    assert_eq!(limit(Dialect::Completions, r#"{"max_tokens":99999999999}"#), Some(u32::MAX));
    assert_eq!(limit(Dialect::Completions, r#"{"max_tokens":-1}"#), None);
    assert!(chat(r#"{"stream": true}"#).stream);
    assert!(!chat(r#"{"stream":"true"}"#).stream);
    let generate = fine(Dialect::Generate, r#"{"text":"hello","lora_path":"a"}"#);
    assert_eq!(generate.adapter.as_deref(), Some(&b"a"[..]));
}

#[test]
fn p49_model_adapter_and_salt_make_disjoint_chains() {
    let with = |fields: &str| completions(format!(r#"{{{fields},"prompt":"the same text in all of them"}}"#));
    let prompts = [
        with(r#""model":"base""#),
        with(r#""model":"lora-a""#),
        with(r#""model":"lora-b""#),
        with(r#""model":"ab","cache_salt":"c""#),
        with(r#""model":"a","cache_salt":"bc""#),
        with(r#""model":"abc""#),
        with(r#""cache_salt":"abc""#),
        with(r#""model":"ab","lora_path":"c""#),
        with(r#""stream":false"#),
    ];
    for (i, one) in prompts.iter().enumerate() {
        assert_eq!(one.chains[0].hashes.len(), 7);
        for other in &prompts[i + 1..] {
            assert!(one.chains[0].hashes.iter().all(|hash| !other.chains[0].hashes.contains(hash)));
        }
    }
}

#[test]
fn p51_every_form_of_chat_content_is_understood() {
    let messages = |messages: &str| chat(format!(r#"{{"model":"m","messages":[{messages}]}}"#));
    let texts = [
        messages(r#"{"role":"user","content":"hello there"}"#),
        messages(r#"{"role":"user","content":[{"type":"text","text":"hello there"}]}"#),
        messages(r#"{"content":[{"text":"hello there","type":"text"}],"role":"user"}"#),
        messages(r#"{"role":"user","content":["hello there"]}"#),
        messages(r#"{"role":"user","content":"hello there","tool_calls":null,"refusal":null,"name":null}"#),
        messages(r#"{"role":"user","content":"hello there","tool_calls":[]}"#),
    ];
    assert!(texts.iter().all(|prompt| *prompt == texts[0]), "the same message in other words");

    let call = |arguments: &str| {
        let call = format!(r#"{{"id":"1","type":"function","function":{{"name":"f","arguments":"{arguments}"}}}}"#);
        messages(&format!(
            r#"{{"role":"assistant","content":null,"tool_calls":[{call}]}},{{"role":"tool","tool_call_id":"1","content":"x"}}"#
        ))
    };
    assert_eq!(call("{}"), call("{}"));
    assert_ne!(call("{}").chains[0].hashes, call(r#"{\"a\":1}"#).chains[0].hashes, "tool calls count");
    let developer = messages(r#"{"role":"developer","content":"x"},{"role":"user","content":"y"}"#);
    let system = messages(r#"{"role":"system","content":"x"},{"role":"user","content":"y"}"#);
    assert_ne!(developer, system);
}

#[test]
fn p51_the_order_of_fields_does_not_matter() {
    let tools = r#"[{"type":"function","function":{"name":"f"}}]"#;
    let calls = [
        r#"{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}"#,
        r#"{"function":{"arguments":"{}","name":"f"},"type":"function","id":"1"}"#,
    ];
    let bodies = [
        format!(
            r#"{{"model":"m","tools":{tools},"messages":[{{"role":"user","content":"a"}},{{"role":"assistant","content":null,"tool_calls":[{}]}}]}}"#,
            calls[0]
        ),
        format!(
            r#"{{"messages":[{{"content":"a","role":"user"}},{{"tool_calls":[{}],"content":null,"role":"assistant"}}],"tools":{tools},"model":"m"}}"#,
            calls[1]
        ),
    ];
    assert_eq!(chat(&bodies[0]), chat(&bodies[1]));
}

#[test]
fn white_space_and_escapes_do_not_matter() {
    let tight = r#"{"model":"m","tools":[{"a":"x y","b":[1,2.5,true,null]}],"messages":[{"role":"user","content":"é/\n\"😀"}]}"#;
    let loose = "\u{feff} { \"model\" :\t\"\\u006d\",\r\n\"tools\" : [ {\"a\" : \"x\\u0020y\" , \"b\" : [ 1 , 2.5 ,true , null ] } ] ,\
        \"m\\u0065ssages\":[ {\"role\":\"user\" , \"content\":\"\\u00E9\\/\\u000a\\u0022\\uD83D\\ude00\"} ] } ";
    assert_eq!(chat(tight), chat(loose));
    let changed = tight.replace("x y", "xy");
    assert_ne!(chat(tight), chat(changed), "white space inside a string is text");
}

#[test]
fn boundaries_between_parts_cannot_be_confused() {
    let bodies = [
        r#"{"messages":[{"role":"user","content":"abc"}]}"#,
        r#"{"messages":[{"role":"usera","content":"bc"}]}"#,
        r#"{"messages":[{"role":"user","content":"a"},{"role":"user","content":"bc"}]}"#,
        r#"{"messages":[{"role":"user","content":["a","bc"]}]}"#,
        r#"{"messages":[{"role":"user","content":["ab","c"]}]}"#,
        r#"{"messages":[{"role":"user","name":"c","content":"ab"}]}"#,
        r#"{"messages":[{"role":"user","content":"ab","tool_call_id":"c"}]}"#,
        r#"{"tools":["abc"],"messages":[{"role":"user"}]}"#,
        r#"{"tools":["a","bc"],"messages":[{"role":"user"}]}"#,
        r#"{"documents":["abc"],"messages":[{"role":"user"}]}"#,
        r#"{"messages":[{"role":"user","content":[{"type":"thinking","thinking":"abc"}]}]}"#,
        r#"{"messages":[{"role":"user","content":[{"type":"new","abc":1}]}]}"#,
        r#"{"messages":[{"role":"user","content":[{"type":"new","abc":2}]}]}"#,
    ];
    // The end pushes every difference into a full block.
    let end = r#"{"role":"user","content":"and so on and so on"}]}"#;
    let prompts: Vec<_> = bodies.map(|body| chat(body.replace("]}", &format!(",{end}")))).into_iter().collect();
    let prompts: Vec<_> = prompts.iter().map(|prompt| *prompt.chains[0].hashes.last().unwrap()).collect();
    for (i, one) in prompts.iter().enumerate() {
        assert!(!prompts[i + 1..].contains(one), "{} is like another", bodies[i]);
    }
    // A client that writes the framing's own byte gains nothing by it.
    let forged = chat(b"{\"messages\":[{\"role\":\"user\xff\x62abc\"}]}");
    assert_eq!(shared(&forged, &chat(bodies[0])), 2, "only as far as the role goes");
}

#[test]
fn p76_a_later_turn_keeps_the_blocks_of_the_earlier_one() {
    let first = chat(CONVERSATION);
    let answer = r#",{"role":"assistant","reasoning_content":"Rayleigh.","content":"Because of scattering."},{"role":"user","content":"And at dusk?"}]}"#;
    let second = chat(CONVERSATION.replace("]}", answer));
    assert_eq!(shared(&first, &second), first.blocks(), "all of the first turn");
    let other = chat(CONVERSATION.replace("]}", &answer.replace("Rayleigh", "Mie")));
    assert!(shared(&second, &other) >= first.blocks(), "the shared start");
    assert!(shared(&second, &other) < second.blocks(), "not the reasoning that differs");
}

#[test]
fn the_same_conversation_is_the_same_chain_in_every_chat_dialect() {
    let chat = chat(CONVERSATION);
    let responses = fine(
        Dialect::Responses,
        r#"{"model":"m","instructions":"Be brief.","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"Why is the sky blue?"}]}]}"#,
    );
    let short = fine(Dialect::Responses, r#"{"model":"m","instructions":"Be brief.","input":"Why is the sky blue?"}"#);
    let messages = fine(
        Dialect::Messages,
        r#"{"model":"m","system":"Be brief.","messages":[{"role":"user","content":"Why is the sky blue?"}]}"#,
    );
    let blocks = fine(
        Dialect::Messages,
        r#"{"model":"m","messages":[{"role":"user","content":"Why is the sky blue?"}],"system":[{"type":"text","text":"x-anthropic-billing-header: cc_version=2; cch=1f3;"},{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}]}"#,
    );
    assert!([responses, short, messages, blocks].iter().all(|prompt| *prompt == chat));
}

#[test]
fn anthropic_tool_use_thinking_and_results_count() {
    let with = |thinking: &str, city: &str, result: &str| {
        fine(
            Dialect::Messages,
            format!(
                r#"{{"messages":[
                {{"role":"assistant","content":[{{"type":"thinking","thinking":"{thinking}"}},{{"type":"tool_use","id":"1","name":"weather","input":{{"city":"{city}"}}}}]}},
                {{"role":"user","content":[{{"type":"tool_result","tool_use_id":"1","content":[{{"type":"text","text":"{result}"}}]}}]}},
                {{"role":"user","content":"and so on and so on"}}]}}"#
            ),
        )
    };
    let last = |prompt: &Prompt| *prompt.chains[0].hashes.last().unwrap();
    let base = with("hm", "Oslo", "rain");
    for other in [with("ah", "Oslo", "rain"), with("hm", "Rome", "rain"), with("hm", "Oslo", "snow")] {
        assert_ne!(last(&base), last(&other));
    }
}

#[test]
fn responses_items_count_with_all_their_parts() {
    let with = |arguments: &str, output: &str| {
        fine(
            Dialect::Responses,
            format!(
                r#"{{"input":[{{"type":"function_call","call_id":"1","name":"f","arguments":"{arguments}"}},
                {{"type":"function_call_output","call_id":"1","output":"{output}"}},
                {{"role":"user","content":"and so on and so on"}}]}}"#
            ),
        )
    };
    let last = |prompt: Prompt| *prompt.chains[0].hashes.last().unwrap();
    assert_ne!(last(with("{}", "a")), last(with("{}", "b")));
    assert_ne!(last(with("{}", "a")), last(with("[]", "a")));
}

#[test]
fn a_batch_of_prompts_has_a_chain_each() {
    let single = |text: &str| completions(format!(r#"{{"model":"m","prompt":{text}}}"#)).chains;
    let batch = completions(r#"{"model":"m","prompt":["hello world", "good morning"]}"#);
    assert_eq!(batch.chains, [single(r#""hello world""#), single(r#""good morning""#)].concat());
    assert_eq!(batch.tokens, 6);

    let ids = single("[10, 11,12 ,13,14]");
    assert_eq!((ids.len(), ids[0].tokens, ids[0].hashes.len()), (1, 5, 5), "an id is a token");
    assert_eq!(single("[[10,11,12,13,14],[],[10]]").len(), 2, "an empty prompt can match nothing");
    assert_eq!(single("[[10,11,12,13,14],[1]]")[0], ids[0]);
    assert_ne!(single("[538976288]")[0].hashes, single(r#""    ""#)[0].hashes, "an id is not the text of its bytes");

    let generate = fine(Dialect::Generate, r#"{"model":"m","input_ids":[10,11,12,13,14]}"#);
    assert_eq!(generate.chains, ids);
    let embeddings = fine(Dialect::Embeddings, r#"{"model":"m","input":["hello world","good morning"]}"#);
    assert_eq!(embeddings.chains, batch.chains);
    let texts = fine(Dialect::Generate, r#"{"model":"m","text":["hello world","good morning"]}"#);
    assert_eq!(texts.chains, batch.chains);
}

#[test]
fn blocks_are_full_and_tokens_count_the_rest_too() {
    let blocks = Blocks { tokens: 4, max: 3, seed: 0, openings: false };
    let read = |length: usize| {
        read(Dialect::Completions, format!(r#"{{"prompt":"{}"}}"#, "x".repeat(length)).as_bytes(), None, &blocks)
    };
    for (length, full, tokens) in [(15, 0, 4), (16, 1, 4), (17, 1, 5), (48, 3, 12), (1000, 3, 250)] {
        let prompt = read(length);
        assert_eq!((prompt.blocks(), prompt.tokens), (full, tokens), "{length} bytes");
    }
}

#[test]
fn what_was_declared_but_not_read_counts_as_tokens() {
    let body = format!(r#"{{"prompt":"{}"#, "x".repeat(400));
    let read = |declared| read(Dialect::Completions, body.as_bytes(), declared, &FINE).tokens;
    assert_eq!(read(None), 100);
    assert_eq!(read(Some(body.len() as u64)), 100);
    assert_eq!(read(Some(1)), 100);
    assert_eq!(read(Some(body.len() as u64 + 4000)), 1100);
    assert_eq!(read(Some(u64::MAX)), MAX_TOKENS);
}

#[test]
fn p52_the_seed_changes_every_hash() {
    let body = r#"{"model":"m","prompt":"the quick brown fox jumps over the lazy dog"}"#;
    let one = completions(body);
    let other = read(Dialect::Completions, body.as_bytes(), None, &Blocks { seed: 8, ..FINE });
    assert!(one.chains[0].hashes.iter().all(|hash| !other.chains[0].hashes.contains(hash)));
}

#[test]
fn p52_blocks_that_collide_without_the_parent_do_not_collide_in_a_chain() {
    // Equal blocks at different places have different hashes: the parent is part of each.
    let prompt = completions(format!(r#"{{"prompt":"{}"}}"#, "x".repeat(400)));
    let mut hashes = prompt.chains[0].hashes.clone();
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!(hashes.len(), 100);
}
