//! What a body of 256 KB can make the reader do, counted and not timed.

use super::super::blocks::PUSHES;
use super::*;

const SIZE: usize = 256 << 10;

fn filled(start: &str, element: &str) -> String {
    format!("{start}{}", element.repeat((SIZE - start.len()) / element.len()))
}

fn work(dialect: Dialect, body: &str) -> (usize, Prompt) {
    let before = PUSHES.get();
    let prompt = read(dialect, body.as_bytes(), None, &Blocks::default());
    (PUSHES.get() - before, prompt)
}

#[test]
fn headers_that_claim_huge_pictures_cost_no_more_than_what_is_hashed() {
    // The first bytes of a PNG of 4096 x 4096.
    let picture = r#"{"image":"iVBORw0KGgoAAAANSUhEUgAAEAAAABAA"},"#;
    let start = r#"{"messages":[{"role":"user","content":["#;
    let (pushes, prompt) = work(Dialect::ChatCompletions, &filled(start, picture));
    assert!(pushes < 40_000, "{pushes} pushes");
    assert_eq!(prompt.tokens, MAX_TOKENS, "of 95 million that the headers add up to");
    // Cut inside a message whose role is unknown: nothing is hashed at all.
    let (pushes, _) = work(Dialect::ChatCompletions, &filled(r#"{"messages":[{"content":["#, picture));
    assert!(pushes < 40_000, "{pushes} pushes, frozen");
}

#[test]
fn no_shape_of_body_makes_many_more_pieces_than_it_has_bytes() {
    for element in [
        "{},",
        "[],",
        "\"\",",
        "0,",
        "{0},",
        "{\"\":0},",
        "{\"a\":1},",
        "\"a\":1,",
        "{\"content\":[{}]},",
        "{\"content\":[\"\",\"\"]},",
        "{\"role\":\"u\",\"content\":\"\"},",
        "{\"tool_calls\":[{}]},",
        "{\"text\":\"\"},",
        "{\"text\":\"\\n\"},",
        "\\n",
        "\\u0041",
        "\\\"",
        "[",
        "{",
        "[{",
        "{\"content\":",
        "{\"content\":[",
        "{\"tool_calls\":[{\"function\":",
        "{\"image\":{\"url\":",
        "{\"arguments\":\"{\\\"a\\\":1}\"},",
    ] {
        for (dialect, start) in [
            (Dialect::ChatCompletions, "{\"messages\":["),
            (Dialect::ChatCompletions, "{\"messages\":[{\"role\":\"user\",\"content\":["),
            (Dialect::ChatCompletions, "{\"messages\":[{\"role\":\"user\",\"x\":["),
            (Dialect::ChatCompletions, "{\"messages\":[{"),
            (Dialect::ChatCompletions, "{\"tools\":["),
            (Dialect::ChatCompletions, "{\"messages\":\""),
            (Dialect::Messages, "{\"system\":["),
            (Dialect::Responses, "{\"input\":["),
            (Dialect::Completions, "{\"prompt\":["),
            (Dialect::Completions, "{\"prompt\":[["),
        ] {
            let (pushes, _) = work(dialect, &filled(start, element));
            assert!(pushes <= 4 * SIZE, "{start}{element} makes {pushes}");
        }
    }
}

#[test]
fn prompts_too_short_for_a_block_are_no_chains_to_look_up() {
    for element in ["\"x\",", "\"\",", "[1,2],", "[],"] {
        let (_, prompt) = work(Dialect::Embeddings, &filled("{\"input\":[", element));
        assert_eq!(prompt.chains.len(), 0, "{element}");
    }
    let (_, prompt) = work(Dialect::Embeddings, &filled("{\"input\":[", r#""a b","#));
    assert!(prompt.tokens > 40_000, "they count all the same: {}", prompt.tokens);
}

#[test]
fn the_chains_of_a_batch_are_bounded_and_the_rest_of_it_counts() {
    let ids = format!("[{}],", vec!["1"; 64].join(","));
    let (_, prompt) = work(Dialect::Completions, &filled("{\"prompt\":[", &ids));
    assert_eq!(prompt.chains.len(), MAX_CHAINS);
    assert!(prompt.tokens > 2 * 64 * MAX_CHAINS as u32, "{}", prompt.tokens);
}
