//! Prompts that must hash alike, and those that must not.

use super::*;

fn responses(items: &str) -> Prompt {
    fine(Dialect::Responses, format!(r#"{{"model":"m","input":[{items},{{"role":"user","content":"and so on"}}]}}"#))
}

fn messages(content: &str) -> Prompt {
    let end = r#"{"role":"user","content":"and so on"}"#;
    fine(Dialect::Messages, format!(r#"{{"messages":[{{"role":"user","content":{content}}},{end}]}}"#))
}

fn tool_call(call: &str) -> Prompt {
    let end = r#"{"role":"user","content":"and so on"}"#;
    chat(format!(r#"{{"messages":[{{"role":"assistant","tool_calls":[{call}]}},{end}]}}"#))
}

/// With no block in common after the first difference, the last ones tell.
fn assert_differ(one: &Prompt, other: &Prompt, what: &str) {
    assert_ne!(one.chains[0].hashes.last(), other.chains[0].hashes.last(), "{what}");
}

#[test]
fn what_a_custom_tool_was_given_is_not_dropped() {
    for item in [
        r#"{"type":"custom_tool_call","call_id":"1","name":"apply_patch","input":"@"}"#,
        r#"{"type":"local_shell_call","call_id":"1","action":{"type":"exec","command":["@"]}}"#,
        r#"{"type":"computer_call","call_id":"1","action":{"type":"type","text":"@"}}"#,
        r#"{"type":"code_interpreter_call","call_id":"1","code":"@"}"#,
        r#"{"type":"file_search_call","call_id":"1","queries":["@"]}"#,
        r#"{"type":"file_search_call","call_id":"1","queries":["x"],"results":[{"text":"@"}]}"#,
        r#"{"type":"apply_patch_call","call_id":"1","operation":{"diff":"@"}}"#,
        r#"{"role":"assistant","content":"x","audio":{"id":"@"}}"#,
        r#"{"role":"user","content":"x","some_new_member":"@"}"#,
        r#"{"role":"user","content":[{"type":"text","text":"x","some_new_member":"@"}]}"#,
    ] {
        let with = |text: &str| responses(&item.replace('@', text));
        assert_eq!(with("ls"), with("ls"));
        assert_differ(&with("ls"), &with("rm"), item);
        let long = |middle: &str| with(&format!("{0}{middle}{0}", "x".repeat(5000)));
        assert_differ(&long("ls"), &long("rm"), item);
    }
    let custom =
        |input: &str| tool_call(&format!(r#"{{"id":"1","type":"custom","custom":{{"name":"f","input":"{input}"}}}}"#));
    assert_differ(&custom("ls"), &custom("rm"), "a custom tool in a chat");
}

#[test]
fn bookkeeping_of_servers_and_clients_makes_no_difference() {
    let plain = responses(r#"{"role":"assistant","content":[{"type":"output_text","text":"x"}]}"#);
    let kept = responses(
        r#"{"id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","annotations":[{"a":1}],"logprobs":[1],"text":"x"}],"metadata":null}"#,
    );
    assert_eq!(plain, kept);
    let thinking = |signature: &str| {
        messages(&format!(r#"[{{"type":"thinking","thinking":"t"{signature}}},{{"type":"text","text":"x"}}]"#))
    };
    assert_eq!(thinking(""), thinking(r#","signature":"abc","cache_control":{"type":"ephemeral"}"#));
}

#[test]
fn the_order_of_unknown_members_makes_no_difference() {
    let one = responses(r#"{"type":"new","b":"x","a":[1]}"#);
    assert_eq!(one, responses(r#"{"a":[1],"b":"x","type":"new"}"#));
    assert_differ(&one, &responses(r#"{"type":"new","a":"x","b":[1]}"#), "which is which");
    // Too many to be sorted, and still all there.
    let many = |last: u32| {
        let members: Vec<_> = (0..100).map(|i| format!(r#""m{i}":{}"#, if i == 99 { last } else { i })).collect();
        responses(&format!("{{{}}}", members.join(",")))
    };
    assert_differ(&many(1), &many(2), "the last of many");
}

#[test]
fn a_tool_result_is_the_same_as_text_and_as_one_part() {
    let with = |content: &str| {
        messages(&format!(
            r#"[{{"type":"tool_result","tool_use_id":"1","content":{content}}},{{"type":"text","text":"b"}}]"#
        ))
    };
    let text = with(r#""sunny""#);
    assert_eq!(text, with(r#"[{"type":"text","text":"sunny"}]"#));
    assert_eq!(text, with(r#"["sunny"]"#));
    assert_eq!(text, with(r#"{"type":"text","text":"sunny"}"#));
    assert_differ(&text, &with(r#"["sun","ny"]"#), "two parts");
}

#[test]
fn a_part_inside_a_tool_result_is_not_one_beside_it() {
    let result = |content: &str| format!(r#"{{"type":"tool_result","tool_use_id":"1","content":[{content}]}}"#);
    let (a, b) = (r#"{"type":"text","text":"a"}"#, r#"{"type":"text","text":"b"}"#);
    let bodies = [
        messages(&format!("[{}]", result(&format!("{a},{b}")))),
        messages(&format!("[{},{b}]", result(a))),
        messages(&format!("[{}]", result(&format!("{a},{}", result(b))))),
        messages(&format!("[{}]", result(&result(&format!("{a},{b}"))))),
    ];
    for (i, one) in bodies.iter().enumerate() {
        bodies[i + 1..].iter().for_each(|other| assert_differ(one, other, "nesting"));
    }
}

#[test]
fn arguments_are_the_same_as_text_and_as_an_object() {
    let with = |arguments: &str| {
        tool_call(&format!(r#"{{"id":"1","type":"function","function":{{"name":"f","arguments":{arguments}}}}}"#))
    };
    let object = with(r#"{"a":[1, "é\n"]}"#);
    assert_eq!(object, with(r#""{\"a\":[1,\"é\\n\"]}""#));
    assert_eq!(object, with(r#"" {\"a\": [1, \"\\u00e9\\n\"]}\n""#));
    assert_differ(&object, &with(r#"{"a":[2,"é\n"]}"#), "other arguments");

    let item =
        |arguments: &str| responses(&format!(r#"{{"type":"function_call","call_id":"1","arguments":{arguments}}}"#));
    assert_eq!(item(r#"{"a":1}"#), item(r#""{\"a\":1}""#));
}

#[test]
fn arguments_that_are_no_json_are_told_apart_and_end_nothing() {
    let with =
        |arguments: &str| tool_call(&format!(r#"{{"id":"1","function":{{"name":"f","arguments":{arguments}}}}}"#));
    // A model that stopped inside a string, or wrote something else.
    let odd =
        [r#""{\"a\":\"b""#, r#""{\"a\":\"b\\""#, r#""{a b}""#, r#""{ab}""#, r#""a b""#, r#""ab""#, r#""{""#, r#"" ""#];
    for (i, one) in odd.iter().enumerate() {
        assert!(with(one).blocks() >= 10, "{one}: what comes after still counts");
        odd[i + 1..].iter().for_each(|other| assert_differ(&with(one), &with(other), one));
    }
}

#[test]
fn a_stored_conversation_stands_between_the_instructions_and_the_input() {
    let with = |stored: &str, input: &str| {
        let instructions = r#""tools":[{"name":"f"}],"instructions":"a long instruction for all turns""#;
        fine(Dialect::Responses, format!(r#"{{"model":"m",{instructions},{stored}"input":"{input}"}}"#))
    };
    let first = with("", "hello there");
    let next = with(r#""previous_response_id":"resp_1","#, "hello there");
    let other = with(r#""previous_response_id":"resp_2","#, "hello there");
    assert!(shared(&first, &next) >= 12, "tools and instructions: {}", shared(&first, &next));
    assert!(shared(&first, &next) + 6 <= first.blocks(), "not the input");
    assert_differ(&next, &other, "what is stored");
    assert_eq!(next, with(r#""previous_response_id":"resp_1","#, "hello there"));
}
