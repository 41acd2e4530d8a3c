//! Where a signal is found, as written in a configuration.
//!
//! `name` is the value of all series of that name; `name{label="value",other=value}` only of those with these labels
//! (quotes are optional); `name{..}[label]` is the number in a label instead; `a + b` adds.

use super::text::closing_quote;
use std::fmt;

/// A parsed `name{label="value"}[label] + ..`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricSpec {
    text: Box<str>,
    terms: Vec<Term>,
}

/// One `name{..}[label]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Term {
    pub(super) name: Box<str>,
    /// Label name and value, the value escaped as in a Prometheus text.
    pub(super) matchers: Vec<(Box<str>, Box<str>)>,
    /// The label to read instead of the value.
    pub(super) label: Option<Box<str>>,
}

impl MetricSpec {
    /// Reads `name{label="value"}` and the forms above.
    ///
    /// # Errors
    /// The first place where the text cannot be a metric, and why.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        let mut parser = Parser { text, rest: text };
        let mut terms = vec![parser.term()?];
        while parser.eat('+') {
            terms.push(parser.term()?);
        }
        if !parser.rest.is_empty() {
            return Err(parser.error("unexpected text after the metric"));
        }
        Ok(Self { text: text.trim().into(), terms })
    }

    /// What is added up; at least one.
    pub(super) fn terms(&self) -> &[Term] {
        &self.terms
    }
}

impl fmt::Display for MetricSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Why a text is no metric, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError {
    /// Which character, counted from 1.
    pub column: usize,
    /// What is wrong with it.
    pub problem: &'static str,
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "column {}: {}", self.column, self.problem)
    }
}

impl std::error::Error for SpecError {}

struct Parser<'a> {
    text: &'a str,
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn term(&mut self) -> Result<Term, SpecError> {
        let name = self.word(|c| c == ':').ok_or_else(|| self.error("expected a metric name"))?.into();
        let mut matchers = Vec::new();
        if self.eat('{') {
            while !self.eat('}') {
                matchers.push(self.matcher()?);
                if !self.eat(',') && !self.rest.starts_with('}') {
                    return Err(self.error("expected `,` or `}` after a label"));
                }
            }
        }
        let mut label = None;
        if self.eat('[') {
            label = Some(self.label_name()?);
            self.expect(']', "expected `]` after the label to read")?;
        }
        Ok(Term { name, matchers, label })
    }

    fn matcher(&mut self) -> Result<(Box<str>, Box<str>), SpecError> {
        let name = self.label_name()?;
        self.expect('=', "expected `=` after the label name")?;
        self.skip_blanks();
        let value = if let Some(quoted) = self.rest.strip_prefix('"') {
            let end = closing_quote(quoted.as_bytes()).ok_or_else(|| self.error("this quote is never closed"))?;
            self.rest = quoted;
            let value = self.take(end);
            if !value.split("\\\\").all(|part| part.split('\\').skip(1).all(|after| after.starts_with(['"', 'n']))) {
                return Err(self.error("only \\\\, \\\" and \\n may be escaped before this quote"));
            }
            self.eat('"');
            value
        } else {
            let end = self.rest.find([',', '}', '"', '\\']).unwrap_or(self.rest.len());
            let value = self.take(end).trim_end();
            if self.rest.starts_with(['"', '\\']) {
                return Err(self.error("a value with quotes or backslashes must be quoted"));
            }
            value
        };
        Ok((name, value.into()))
    }

    fn label_name(&mut self) -> Result<Box<str>, SpecError> {
        Ok(self.word(|_| false).ok_or_else(|| self.error("expected a label name"))?.into())
    }

    /// A name of letters, digits, `_` and what `also` allows, not beginning with a digit.
    fn word(&mut self, also: impl Fn(char) -> bool) -> Option<&'a str> {
        self.skip_blanks();
        if self.rest.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        let in_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || also(c);
        let end = self.rest.find(|c| !in_word(c)).unwrap_or(self.rest.len());
        let word = self.take(end);
        self.skip_blanks();
        (!word.is_empty()).then_some(word)
    }

    /// Takes `token` and the blanks around it, if it is next.
    fn eat(&mut self, token: char) -> bool {
        self.skip_blanks();
        let Some(rest) = self.rest.strip_prefix(token) else { return false };
        self.rest = rest;
        self.skip_blanks();
        true
    }

    fn expect(&mut self, token: char, problem: &'static str) -> Result<(), SpecError> {
        if self.eat(token) { Ok(()) } else { Err(self.error(problem)) }
    }

    fn take(&mut self, len: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at_checked(len).unwrap_or((self.rest, ""));
        self.rest = rest;
        taken
    }

    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn error(&self, problem: &'static str) -> SpecError {
        let column = self.text.chars().count() - self.rest.chars().count() + 1;
        SpecError { column, problem }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn term(text: &str) -> Term {
        let spec = MetricSpec::parse(text).unwrap();
        assert_eq!(spec.terms().len(), 1);
        spec.terms[0].clone()
    }

    fn matchers(text: &str) -> Vec<(String, String)> {
        term(text).matchers.into_iter().map(|(name, value)| (name.into(), value.into())).collect()
    }

    #[test]
    fn a_bare_name() {
        assert_eq!(
            term(" engine:queue_size "),
            Term { name: "engine:queue_size".into(), matchers: vec![], label: None }
        );
    }

    #[test]
    fn quotes_are_optional() {
        let both = vec![("type".to_owned(), "waiting".to_owned()), ("v".to_owned(), "1".to_owned())];
        assert_eq!(matchers(r#"q{type="waiting",v="1"}"#), both);
        assert_eq!(matchers("q{type=waiting,v=1}"), both);
        assert_eq!(matchers(r#"q { type = waiting , v = "1" , }"#), both);
        assert!(matchers("q{}").is_empty());
    }

    #[test]
    fn a_quoted_value_may_hold_anything() {
        let odd = r#"a,b} = \"c\" \\ \n"#;
        assert_eq!(matchers(&format!("q{{x=\"{odd}\"}}")), vec![("x".to_owned(), odd.to_owned())]);
        assert_eq!(matchers(r#"q{x="\\"}"#), vec![("x".to_owned(), r"\\".to_owned())]);
    }

    #[test]
    fn a_label_may_hold_the_number() {
        assert_eq!(term("info{a=b}[block_size]").label.as_deref(), Some("block_size"));
    }

    #[test]
    fn terms_are_added() {
        let spec = MetricSpec::parse(r#"a{x="+"} + b[c]"#).unwrap();
        assert_eq!(spec.terms().iter().map(|term| &*term.name).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(spec.to_string(), r#"a{x="+"} + b[c]"#);
    }

    #[test]
    fn an_error_says_what_is_wrong_and_where() {
        for (text, message) in [
            ("", "column 1: expected a metric name"),
            ("9lives", "column 1: expected a metric name"),
            ("a-b", "column 2: unexpected text after the metric"),
            ("a{b", "column 4: expected `=` after the label name"),
            ("a{b=c", "column 6: expected `,` or `}` after a label"),
            ("a{b=\"c}", "column 5: this quote is never closed"),
            ("a{b=\"c\" d=e}", "column 9: expected `,` or `}` after a label"),
            ("a{=c}", "column 3: expected a label name"),
            ("a{b=c\"d}", "column 6: a value with quotes or backslashes must be quoted"),
            ("a{b=\"\\d\"}", "column 8: only \\\\, \\\" and \\n may be escaped before this quote"),
            ("a[b", "column 4: expected `]` after the label to read"),
            ("a +", "column 4: expected a metric name"),
            ("é", "column 1: expected a metric name"),
        ] {
            assert_eq!(MetricSpec::parse(text).unwrap_err().to_string(), message, "{text}");
        }
    }
}
