//! What gateways without a common secret can agree by.

use super::*;

/// Blocks of 4 tokens: the beginning has 512 of them.
fn opening(dialect: Dialect, body: &str, seed: u64) -> Option<Opening> {
    read(dialect, body.as_bytes(), None, &Blocks { tokens: 4, max: 4096, seed, openings: true }).opening
}

fn chat_opening(messages: &str) -> Option<Opening> {
    opening(Dialect::ChatCompletions, &format!(r#"{{"model":"m","messages":[{messages}]}}"#), 7)
}

fn system(length: usize) -> String {
    format!(r#"{{"role":"system","content":"{}"}}"#, "s".repeat(length))
}

fn user(text: &str) -> String {
    format!(r#"{{"role":"user","content":"{text} with some more words"}}"#)
}

#[test]
fn an_opening_does_not_depend_on_the_secret() {
    let body = r#"{"messages":[{"role":"user","content":"why is the sky blue, and since when?"}]}"#;
    let one = opening(Dialect::ChatCompletions, body, 1);
    assert!(one.is_some());
    assert_eq!(one, opening(Dialect::ChatCompletions, body, 2));
}

#[test]
fn all_turns_of_a_conversation_have_one_opening() {
    let first = format!("{},{}", system(100), user("why"));
    let answer = r#"{"role":"assistant","content":"because of this and that"}"#;
    let next = format!("{first},{answer},{}", user("and then"));
    assert_eq!(chat_opening(&first), chat_opening(&next));
    let other = chat_opening(&format!("{},{}", system(100), user("how")));
    assert_ne!(chat_opening(&first).unwrap().whole, other.unwrap().whole);
}

#[test]
fn conversations_with_one_long_system_prompt_share_the_beginning_and_not_the_whole() {
    let asked = |text| chat_opening(&format!("{},{}", system(10_000), user(text))).unwrap();
    let (one, other) = (asked("why"), asked("how"));
    assert_eq!(one.beginning, other.beginning);
    assert_ne!(one.whole, other.whole);
}

#[test]
fn a_text_opens_with_its_beginning_only() {
    let text =
        |end: &str| opening(Dialect::Completions, &format!(r#"{{"prompt":"{}{end}"}}"#, "t".repeat(9000)), 7).unwrap();
    assert_eq!(text("a"), text("b"));
    assert_eq!(text("a").beginning, text("a").whole);
    let ids = |last: u32| format!(r#"{{"prompt":[{}{last}]}}"#, "5,".repeat(3000));
    let ids = |last| opening(Dialect::Completions, &ids(last), 7).unwrap();
    assert_eq!(ids(1), ids(2));
}

#[test]
fn a_picture_ends_an_opening_since_its_digest_holds_the_secret() {
    let body = r#"{"messages":[{"role":"user","content":[{"type":"text","text":"what is in this picture, please?"},
        {"type":"image_url","image_url":{"url":"https://example.com/a.png"}}]}]}"#;
    let one = opening(Dialect::ChatCompletions, body, 1);
    assert!(one.is_some());
    assert_eq!(one, opening(Dialect::ChatCompletions, body, 2));
    let at_once = r#"{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"a"}}]}]}"#;
    assert_eq!(opening(Dialect::ChatCompletions, at_once, 1), opening(Dialect::ChatCompletions, at_once, 2));
}

#[test]
fn another_model_has_another_home() {
    let with = |model| {
        let body = format!(r#"{{"model":"{model}","prompt":"a text that fills a block or two"}}"#);
        opening(Dialect::Completions, &body, 7).unwrap()
    };
    assert_ne!(with("a"), with("b"));
}

#[test]
fn less_than_a_block_has_no_opening_and_a_short_message_has_its_first_block() {
    assert_eq!(opening(Dialect::Completions, r#"{"prompt":"hi"}"#, 7), None);
    let short = r#"{"role":"user","content":"hi"}"#;
    let turns =
        |next: &str| chat_opening(&format!(r#"{short},{{"role":"assistant","content":"hello"}},{}"#, user(next)));
    assert!(turns("why").is_some());
    assert_eq!(turns("why"), turns("how"));
}

#[test]
fn nothing_is_hashed_that_was_not_asked_for() {
    assert_eq!(completions(r#"{"prompt":"a text that fills a block or two"}"#).opening, None);
}
