//! Chat requests of a given size, each with a prompt of its own.

use bytes::Bytes;
use serde::Serialize;

/// Digits of a request's number.
const DIGITS: usize = 16;

/// Escapes as often as in English prose and code: 13 line ends and 4 quotation marks in a thousand characters.
const LINES: [&str; 6] = [PLAIN, PLAIN, QUOTED, PLAIN, PLAIN, PLAIN];
const PLAIN: &str = r"The quick brown fox jumps over the lazy dog, and then says good bye to it.\n";
const QUOTED: &str = r#"The quick brown fox jumps over the lazy dog, and then says \"bye\" to it.\n"#;

/// A chat whose first quarter all requests share, as they do a system prompt; then comes the request's number, so that
/// no block after it is like that of another request.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Chat {
    template: String,
    number_at: usize,
}

impl Chat {
    /// A chat of about `size` bytes, at least 500.
    pub(crate) fn new(size: usize) -> Self {
        let text = |size: usize| {
            LINES.iter().cycle().scan(0, move |sum, line| {
                *sum += line.len();
                (*sum <= size).then_some(*line)
            })
        };
        let mut template = String::from(r#"{"model":"m","messages":[{"role":"system","content":""#);
        template.extend(text(size / 4));
        template.push_str(r#""},{"role":"user","content":"Question "#);
        let number_at = template.len();
        template.extend(["0"; DIGITS]);
        template.push(' ');
        template.extend(text(size.saturating_sub(template.len() + 40)));
        template.push_str(r#""}],"max_tokens":100}"#);
        Self { template, number_at }
    }

    /// The request with this number.
    pub(crate) fn numbered(&self, number: u64) -> Bytes {
        let mut body = self.template.clone().into_bytes();
        let place = body.get_mut(self.number_at..self.number_at + DIGITS);
        place.unwrap_or_default().copy_from_slice(format!("{number:0DIGITS$}").as_bytes());
        body.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chat_has_about_its_size_and_its_number() -> Result<(), serde_json::Error> {
        for size in [4 << 10, 128 << 10] {
            let body = Chat::new(size).numbered(42);
            assert!((size * 95 / 100..=size).contains(&body.len()), "{} for {size}", body.len());
            let json: serde_json::Value = serde_json::from_slice(&body)?;
            let question = json.pointer("/messages/1/content").and_then(|content| content.as_str());
            assert!(question.is_some_and(|question| question.starts_with("Question 0000000000000042 The")));
        }
        Ok(())
    }
}
