//! Another model than the client named, without the client knowing.
//!
//! A canary, an alias or a move to a new version: rules say which model a request goes to (`rules`), the name is replaced
//! in its body (`request`) and put back in the answer, however that is cut (`restorer`). Only names are changed, where the
//! dialects have one; a text that looks like a name is the model's or the client's own, and stays.

mod request;
mod restorer;
mod rules;
#[cfg(test)]
mod tests;

pub use self::request::{Outcome, Rewritten, rename, rewrite};
pub use self::restorer::Restorer;
pub use self::rules::{Rule, Rules, Target, draw};

/// A name as JSON has it, quotes included. Bytes that are not UTF-8 stay what they are.
fn quoted(name: &[u8]) -> Vec<u8> {
    let mut text = vec![b'"'];
    for byte in name {
        match byte {
            b'"' | b'\\' => text.extend([b'\\', *byte]),
            0..0x20 => {
                let low = char::from_digit(u32::from(byte & 15), 16).unwrap_or('0') as u8;
                text.extend([b'\\', b'u', b'0', b'0', b'0' + (byte >> 4), low]);
            }
            _ => text.push(*byte),
        }
    }
    text.push(b'"');
    text
}
