//! Which model a request gets that leaves it open.

use super::model::ModelName;
use super::{ConfigError, Whole};
use crate::prompt::MAX_TOKENS;
use crate::rewrite::Rules;
use crate::routes::{Choice, Routes, Rule};
use serde::Deserialize;

/// Chooses the model for requests that leave it open by asking for a model of a name such as `auto`. The chosen name takes
/// the place of theirs in the request, and theirs the place of the chosen one in the answer, as with `model_rewrites`, which
/// apply to the chosen name in turn.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenChoice {
    /// The names by which clients leave the choice open; no pool may have one of them.
    #[serde(default = "auto")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = ["auto"])))]
    applies_to: Vec<ModelName>,
    /// The first rule of which everything holds decides. A rule that none can reach, because one before it holds wherever
    /// it does, is refused.
    rules: Vec<WrittenRule>,
    /// The model where no rule holds.
    default: ModelName,
}

/// A model, and when it is chosen: when all holds that is written. At least one condition is needed.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct WrittenRule {
    /// The model.
    model: ModelName,
    /// The request has this header.
    header: Option<String>,
    /// The header has exactly this value. Only with `header`.
    equals: Option<String>,
    /// The prompt has at least so many tokens, by the estimate that places requests: 4 bytes of text each.
    min_prompt_tokens: Option<Whole<0, MAX_TOKENS>>,
    /// The prompt has at most so many tokens.
    max_prompt_tokens: Option<Whole<0, MAX_TOKENS>>,
    /// The last message of the user contains one of these. ASCII letters match in either case, and parts of words match too.
    /// Looked for in the first 16 KiB of the message's text, and in no message that lies beyond `request.max_body_bytes`.
    #[serde(default)]
    keywords: Vec<String>,
    /// The request offers the model tools or functions, or offers none.
    has_tools: Option<bool>,
    /// There is a picture in the prompt, or none.
    has_images: Option<bool>,
}

fn auto() -> Vec<ModelName> {
    vec![ModelName("auto".to_owned())]
}

impl WrittenChoice {
    /// Checks that every model that may be chosen is served, or replaced by one that is.
    pub(super) fn resolve(self, routes: &Routes, rewrites: &Rules) -> Result<Choice, ConfigError> {
        let applies_to: Vec<Box<str>> = self.applies_to.into_iter().map(|ModelName(name)| name.into()).collect();
        if applies_to.is_empty() {
            return Err(ConfigError::at("applies_to", "at least one name is needed"));
        }
        if let Some((i, name)) =
            applies_to.iter().enumerate().find(|(_, name)| routes.served(name.as_bytes()).is_some())
        {
            return Err(ConfigError::at(
                format!("applies_to[{i}]"),
                format!("a pool has a model named {name:?} already"),
            ));
        }
        if let Some((i, name)) = applies_to.iter().enumerate().find(|(_, name)| rewrites.name(name)) {
            let message = format!("the rule of `model_rewrites` for {name:?} would never be reached");
            return Err(ConfigError::at(format!("applies_to[{i}]"), message));
        }
        let served = |ModelName(model): ModelName| {
            if applies_to.iter().any(|name| **name == *model) {
                return Err(ConfigError::at(
                    "",
                    format!("{model:?} is in `applies_to`; a model that a pool serves is needed"),
                ));
            }
            if !routes.serve(&model) && rewrites.target(model.as_bytes(), 0).is_none() {
                return Err(ConfigError::at("", format!("no pool serves {model:?}")));
            }
            Ok(Box::<str>::from(model))
        };
        let mut rules: Vec<Rule> = Vec::with_capacity(self.rules.len());
        for (i, written) in self.rules.into_iter().enumerate() {
            let here = format!("rules[{i}]");
            let rule = written.resolve(served).map_err(|error| error.within(&here))?;
            if let Some(earlier) = rules.iter().position(|earlier| earlier.covers(&rule)) {
                let message = format!("never reached, because rules[{earlier}] holds wherever this one does");
                return Err(ConfigError::at(here, message));
            }
            rules.push(rule);
        }
        let default = served(self.default).map_err(|error| error.within("default"))?;
        Ok(Choice { applies_to, rules, default })
    }
}

impl WrittenRule {
    fn resolve(self, served: impl Fn(ModelName) -> Result<Box<str>, ConfigError>) -> Result<Rule, ConfigError> {
        let wrong = |field, message: &str| Err(ConfigError::at(field, message));
        let header = match (self.header, self.equals) {
            (Some(name), _) if !is_header(&name) => return wrong("header", "the name of a header is needed"),
            (Some(name), value) => Some((name.to_ascii_lowercase().into(), value.map(Into::into))),
            (None, Some(_)) => return wrong("equals", "needs `header`, whose value it is"),
            (None, None) => None,
        };
        if self.keywords.iter().any(String::is_empty) {
            return wrong("keywords", "an empty keyword is in every message");
        }
        let rule = Rule {
            model: served(self.model).map_err(|error| error.within("model"))?,
            header,
            min_tokens: self.min_prompt_tokens.map_or(0, Whole::get),
            max_tokens: self.max_prompt_tokens.map_or(MAX_TOKENS, Whole::get),
            keywords: self.keywords.into_iter().map(|word| word.to_ascii_lowercase().into()).collect(),
            tools: self.has_tools,
            images: self.has_images,
        };
        if rule.min_tokens > rule.max_tokens {
            return wrong("min_prompt_tokens", "more than `max_prompt_tokens`");
        }
        let anything = Rule {
            model: "".into(),
            header: None,
            max_tokens: MAX_TOKENS,
            keywords: Vec::new(),
            tools: None,
            images: None,
            min_tokens: 0,
        };
        if rule.covers(&anything) {
            return wrong("", "a condition is needed; the model where no rule holds is `default`");
        }
        Ok(rule)
    }
}

fn is_header(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}
