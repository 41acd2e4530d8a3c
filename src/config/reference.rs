//! The reference, made from the types that read the configuration, so that it cannot say anything else than they do.

use super::Written;
use crate::schedule::ready::READY;
use crate::schedule::registry::{DECIDERS, DETECTORS, FILTERS, PICKERS, Plugin, SCORERS};
use serde_json::{Map, Value};
use std::fmt::Write;

const HEAD: &str = "\
<!-- Made from the comments and types in src/config by
     `cargo run --no-default-features --features schema --example config-reference`: change them, not this file. -->

# Configuration

";

const EXAMPLE: &str = include_str!("example.json");

/// The JSON schema of the configuration.
pub fn schema() -> Value {
    schemars::schema_for!(Written).to_value()
}

/// The reference as Markdown.
pub fn markdown() -> String {
    let schema = schema();
    let book = Book { top: &schema, definitions: schema.get("$defs").and_then(Value::as_object) };
    let mut out = String::from(HEAD);
    let _ = writeln!(out, "{}\n", description(&schema));
    let _ = writeln!(out, "An example:\n\n```json\n{}\n```\n", EXAMPLE.trim_end());
    book.section(&mut out, "", &schema, 2);
    profiles(&mut out);
    plugins(&mut out, "Filters", FILTERS);
    plugins(&mut out, "Scorers", SCORERS);
    plugins(&mut out, "Pickers", PICKERS);
    plugins(&mut out, "Deciders", DECIDERS);
    plugins(&mut out, "Detectors", DETECTORS);
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

fn profiles(out: &mut String) {
    out.push_str("## Ready profiles\n\nEach by its name, with what the name stands for. To change something in one, take the text \
        instead of the name: for whole answers, the profile `expected-cost` with the scorer \
        `{ \"type\": \"expected-cost-scorer\", \"parameters\": { \"latencyGoal\": 1 } }`.\n\n");
    for ready in READY {
        let _ = writeln!(out, "### `{}`\n\n{}\n\n```json\n{ready}\n```\n", ready.name, ready.summary);
    }
}

fn plugins<T: ?Sized>(out: &mut String, title: &str, table: &[Plugin<T>]) {
    let _ = writeln!(out, "## {title}\n\n| type | what it does |\n|---|---|");
    for plugin in table {
        let _ = writeln!(out, "| `{}` | {} |", plugin.name, plugin.summary);
    }
    out.push('\n');
}

struct Book<'a> {
    top: &'a Value,
    definitions: Option<&'a Map<String, Value>>,
}

impl<'a> Book<'a> {
    /// A table of the fields of `schema`, then a section for each field that holds fields of its own.
    fn section(&self, out: &mut String, path: &str, schema: &'a Value, level: usize) {
        let Some(fields) = schema.get("properties").and_then(Value::as_object) else { return };
        let required = |name: &str| {
            let list = schema.get("required").and_then(Value::as_array);
            list.is_some_and(|list| list.iter().any(|field| field == name))
        };
        if !fields.is_empty() {
            out.push_str("| field | type | default | meaning |\n|---|---|---|---|\n");
        }
        for (name, field) in fields {
            let default = match field.get("default") {
                _ if required(name) => "required".to_owned(),
                None | Some(Value::Null) => String::new(),
                Some(Value::String(text)) => format!("`{text}`"),
                Some(value) => format!("`{value}`"),
            };
            let (kind, meaning) = (self.kind(field), self.meaning(field));
            let _ = writeln!(out, "| `{name}` | {kind} | {default} | {meaning} |");
        }
        if !fields.is_empty() {
            out.push('\n');
        }
        for (at, (name, field)) in fields.iter().enumerate() {
            let (field, suffix) = match field.get("items") {
                Some(items) => (items, "[]"),
                None => (field, ""),
            };
            let inner = self.resolved(field);
            if inner.get("properties").is_some() && !self.is_told_elsewhere(inner, path, at) {
                let dot = if path.is_empty() { "" } else { "." };
                let path = format!("{path}{dot}{name}{suffix}");
                let _ = writeln!(out, "{} `{path}`\n\n{}\n", "#".repeat(level), description(inner));
                self.section(out, &path, inner, (level + 1).min(6));
            }
        }
    }

    /// Whether `inner`, in the `at`th field at `path`, is what another field at the top is: an earlier one, or any if it lies
    /// deeper itself. Two rows are told again where they belong.
    fn is_told_elsewhere(&self, inner: &Value, path: &str, at: usize) -> bool {
        if inner.get("properties").and_then(Value::as_object).is_none_or(|fields| fields.len() <= 2) {
            return false;
        }
        let tops = self.top.get("properties").and_then(Value::as_object).into_iter().flatten();
        let before = if path.is_empty() { at } else { usize::MAX };
        tops.take(before).any(|(_, top)| std::ptr::eq(self.resolved(top), inner))
    }

    /// What `schema` refers to, or itself.
    fn resolved(&self, schema: &'a Value) -> &'a Value {
        let name = schema.get("$ref").and_then(Value::as_str).and_then(|path| path.strip_prefix("#/$defs/"));
        let target = name.and_then(|name| self.definitions?.get(name));
        match (target, alternatives(schema).last()) {
            (Some(target), _) => target,
            (None, Some(option)) => self.resolved(option),
            (None, None) => schema,
        }
    }

    /// The type in words.
    fn kind(&self, field: &'a Value) -> String {
        if let several @ [_, _, ..] = &alternatives(field)[..] {
            return several.iter().map(|one| self.kind(one)).collect::<Vec<_>>().join(" or ");
        }
        let target = self.resolved(field);
        if let Some(title) = field.get("title").or_else(|| target.get("title")).and_then(Value::as_str)
            && target.get("properties").is_none()
        {
            return title.to_owned();
        }
        if let Some(options) = target.get("oneOf").or_else(|| target.get("enum")).and_then(Value::as_array) {
            let names = options.iter().map(|option| option.get("const").unwrap_or(option));
            return names.filter_map(Value::as_str).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" or ");
        }
        let types = match target.get("type") {
            Some(Value::Array(types)) => types.first(),
            other => other,
        };
        match types.and_then(Value::as_str) {
            Some("array") => {
                target.get("items").map_or_else(String::new, |items| format!("list of {}s", self.kind(items)))
            }
            Some("object") => match target.get("additionalProperties") {
                Some(values @ Value::Object(_)) => format!("object of {}", self.kind(values)),
                _ => "object".to_owned(),
            },
            Some("string") => "text".to_owned(),
            Some(other) => other.to_owned(),
            None => String::new(),
        }
    }

    /// The description of a field and of the values it can have.
    fn meaning(&self, field: &'a Value) -> String {
        let mut text = description(field);
        let options = self.resolved(field).get("oneOf").and_then(Value::as_array);
        for option in options.into_iter().flatten() {
            if let Some(name) = option.get("const").and_then(Value::as_str) {
                let _ = write!(text, " `{name}`: {}", description(option));
            }
        }
        text.replace('|', "\\|")
    }
}

/// What `schema` may be, other than null; none if it is one thing only.
fn alternatives(schema: &Value) -> Vec<&Value> {
    let options = schema.get("anyOf").and_then(Value::as_array).into_iter().flatten();
    options.filter(|option| option.get("type") != Some(&Value::from("null"))).collect()
}

fn description(schema: &Value) -> String {
    let text = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scrape::Engine;

    #[test]
    fn the_reference_names_every_built_in_engine() {
        let text = markdown();
        for engine in Engine::ALL {
            assert!(text.contains(&format!("`{}`", engine.name())), "{}", engine.name());
        }
    }

    #[test]
    fn every_field_has_a_meaning() {
        let text = markdown();
        let mut rows = text.lines().filter(|line| line.starts_with("| `")).peekable();
        assert!(rows.peek().is_some());
        for row in rows {
            assert!(!row.ends_with("|  |"), "{row}");
        }
    }
}
