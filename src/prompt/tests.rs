use super::*;

mod alike;
mod bad_input;
mod cut;
mod forms;
mod images;
mod openings;
mod work;

/// A block per 4 bytes: nothing that differs can hide in the last, partial block.
const FINE: Blocks = Blocks { tokens: 1, max: 1 << 20, seed: 7, openings: false };

fn fine(dialect: Dialect, body: impl AsRef<[u8]>) -> Prompt {
    read(dialect, body.as_ref(), None, &FINE)
}

fn chat(body: impl AsRef<[u8]>) -> Prompt {
    fine(Dialect::ChatCompletions, body)
}

fn completions(body: impl AsRef<[u8]>) -> Prompt {
    fine(Dialect::Completions, body)
}

/// Leading blocks two prompts have in common, in their first chains.
fn shared(one: &Prompt, other: &Prompt) -> usize {
    let (Some(one), Some(other)) = (one.chains.first(), other.chains.first()) else { return 0 };
    one.hashes.iter().zip(&other.hashes).take_while(|(a, b)| a == b).count()
}

fn assert_prefix(part: &Prompt, whole: &Prompt, what: &dyn std::fmt::Display) {
    for (part, whole) in part.chains.iter().zip(&whole.chains) {
        assert!(whole.hashes.starts_with(&part.hashes), "{what}: not the first blocks of the whole");
    }
    assert!(part.chains.len() <= whole.chains.len(), "{what}: chains the whole has not");
}
