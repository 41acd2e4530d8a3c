//! The Prometheus text format, a line at a time, borrowed from the body and without allocation.

use memchr::{memchr, memchr_iter, memchr2};

/// Labels of one series that are kept; a line with more is not read. vLLM's `cache_config_info` has 37.
const MAX_LABELS: usize = 256;

/// A label of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Label<'a> {
    pub(super) name: &'a [u8],
    /// Escaped as in the text.
    pub(super) value: &'a [u8],
}

/// The lines of a text without their line feeds and leading blanks. A raw line feed always ends a line: inside a label
/// value it is written `\n`.
pub(super) fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut start = 0;
    memchr_iter(b'\n', text).chain([text.len()]).filter_map(move |end| {
        let line = text.get(start..end)?;
        start = end + 1;
        Some(if line.first().is_some_and(|first| first.is_ascii_whitespace()) { line.trim_ascii_start() } else { line })
    })
}

/// A line at the end of the metric name: `{`, a blank, or the end.
pub(super) fn split_name(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = line.iter().position(|&byte| byte == b'{' || byte.is_ascii_whitespace()).unwrap_or(line.len());
    line.split_at_checked(end)
}

/// The metric that a `# TYPE` or `# HELP` line is about.
pub(super) fn described(line: &[u8]) -> Option<&[u8]> {
    let (keyword, rest) = token(line.strip_prefix(b"#")?);
    matches!(keyword, b"TYPE" | b"HELP").then(|| token(rest).0)
}

/// What follows the name in a sample: fills `labels`, gives the value, NaN if it is malformed. `None` if the labels are, so
/// that nobody can tell whose value it is. A timestamp and an exemplar after the value are passed over.
pub(super) fn sample<'a>(rest: &'a [u8], labels: &mut Vec<Label<'a>>) -> Option<f64> {
    labels.clear();
    let rest = match rest.trim_ascii_start().strip_prefix(b"{") {
        Some(inside) => read_labels(inside, labels)?,
        None => rest,
    };
    let (value, rest) = token(rest);
    let (timestamp, _) = token(rest);
    let ends = timestamp.is_empty() || timestamp.starts_with(b"#") || number(timestamp).is_some();
    Some(number(value).filter(|_| ends).unwrap_or(f64::NAN))
}

/// A decimal number, which may be NaN or infinite.
pub(super) fn number(token: &[u8]) -> Option<f64> {
    std::str::from_utf8(token).ok()?.parse().ok()
}

/// The value of a label, escaped as in the text.
pub(super) fn label<'a>(labels: &[Label<'a>], name: &[u8]) -> Option<&'a [u8]> {
    labels.iter().find(|label| label.name == name).map(|label| label.value)
}

/// A label value as it was before escaping.
pub(super) fn unescape(value: &[u8]) -> Box<[u8]> {
    let mut bytes = value.iter();
    let mut plain = Vec::with_capacity(value.len());
    while let Some(&byte) = bytes.next() {
        plain.push(match byte {
            b'\\' => match bytes.next() {
                Some(b'n') => b'\n',
                Some(&escaped) => escaped,
                None => byte,
            },
            _ => byte,
        });
    }
    plain.into()
}

/// Reads up to the closing brace and gives what follows it.
fn read_labels<'a>(mut rest: &'a [u8], labels: &mut Vec<Label<'a>>) -> Option<&'a [u8]> {
    loop {
        rest = rest.trim_ascii_start();
        if let Some(after) = rest.strip_prefix(b"}") {
            return Some(after);
        }
        let (name, after) = rest.split_at_checked(memchr(b'=', rest)?)?;
        let name = name.trim_ascii_end();
        // Else a brace without labels could reach for the `=` of an exemplar.
        if name.is_empty() || !name.iter().all(|&byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            return None;
        }
        let quoted = after.get(1..)?.trim_ascii_start().strip_prefix(b"\"")?;
        let (value, after) = quoted.split_at_checked(closing_quote(quoted)?)?;
        if labels.len() == MAX_LABELS {
            return None;
        }
        labels.push(Label { name, value });
        rest = after.get(1..)?.trim_ascii_start();
        match rest.split_first()? {
            (b',', after) => rest = after,
            (b'}', _) => {}
            _ => return None,
        }
    }
}

/// Where the quoted text that begins with `text` ends.
pub(super) fn closing_quote(text: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        let at = from + memchr2(b'"', b'\\', text.get(from..)?)?;
        if text.get(at) == Some(&b'"') {
            return Some(at);
        }
        from = at + 2;
    }
}

/// The next run of bytes between blanks, and what follows it.
fn token(text: &[u8]) -> (&[u8], &[u8]) {
    let text = text.trim_ascii_start();
    let end = text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, b""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(rest: &str) -> Option<(Vec<(&str, &str)>, f64)> {
        let mut labels = Vec::new();
        let value = sample(rest.as_bytes(), &mut labels)?;
        let text = |bytes| std::str::from_utf8(bytes).unwrap();
        Some((labels.into_iter().map(|label| (text(label.name), text(label.value))).collect(), value))
    }

    #[test]
    fn lines_end_at_line_feeds_and_the_last_needs_none() {
        assert_eq!(lines(b"a\r\n\n \tb\nc").collect::<Vec<_>>(), [&b"a\r"[..], b"", b"b", b"c"]);
    }

    #[test]
    fn blanks_may_stand_between_any_tokens() {
        assert_eq!(parse(" \t{ a = \"b\" ,\tc=\"d\" , } \t 3 \r"), Some((vec![("a", "b"), ("c", "d")], 3.0)));
        assert_eq!(parse(" 3"), Some((vec![], 3.0)));
        assert_eq!(parse("{}3"), Some((vec![], 3.0)));
    }

    #[test]
    fn a_label_value_may_hold_quotes_commas_braces_and_blanks() {
        let odd = r#"a \"b\", c=\"d\"} 1 \\"#;
        assert_eq!(parse(&format!("{{x=\"{odd}\"}} 2")), Some((vec![("x", odd)], 2.0)));
        assert_eq!(&*unescape(br#"\"\\n\n"#), b"\"\\n\n");
    }

    #[test]
    fn exponents_may_be_padded() {
        assert_eq!(parse(" 1.6469712896e+010"), Some((vec![], 16_469_712_896.0)));
    }

    #[test]
    fn a_timestamp_and_an_exemplar_are_passed_over() {
        assert_eq!(parse(" 5 1395066363000"), Some((vec![], 5.0)));
        assert_eq!(parse(r#"{a="b"} 5 # {trace_id="x"} 1"#), Some((vec![("a", "b")], 5.0)));
        assert_eq!(parse(r#" 5 1.5 # {trace_id="x"} 1"#), Some((vec![], 5.0)));
    }

    #[test]
    fn a_malformed_value_is_no_number() {
        for rest in ["", " ", " x", " 1 x", "{a=\"b\"}", " 0x10", " 1_000"] {
            assert!(parse(rest).unwrap().1.is_nan(), "{rest}");
        }
    }

    #[test]
    fn malformed_labels_are_none() {
        for rest in [
            "{",
            "{a",
            "{a=",
            "{a=b} 1",
            "{a=\"b} 1",
            "{a=\"b\" c=\"d\"} 1",
            "{,} 1",
            "{=\"b\"} 1",
            "{a} 3 # {b=\"c\"} 1",
            "{a=\"b\\",
        ] {
            assert_eq!(parse(rest), None, "{rest}");
        }
        assert_eq!(parse(&format!("{{{}}} 1", "a=\"b\",".repeat(MAX_LABELS + 1))), None);
    }
}
