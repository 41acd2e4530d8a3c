//! Chooses a model by rules, for clients that leave the choice to the gateway.

use crate::headers::Headers;
use crate::prompt::Facts;

/// Rules in order, and what holds where none of them does.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The names by which clients ask for a choice.
    pub applies_to: Vec<Box<str>>,
    /// The first that holds decides.
    pub rules: Vec<Rule>,
    /// The model if none holds.
    pub default: Box<str>,
}

/// A model, and what must all be true for it to be chosen.
#[derive(Clone, Debug)]
pub struct Rule {
    /// The model.
    pub model: Box<str>,
    /// The request has this header, with this value if one is given.
    pub header: Option<(Box<str>, Option<Box<str>>)>,
    /// The prompt has at least so many tokens.
    pub min_tokens: u32,
    /// It has at most so many.
    pub max_tokens: u32,
    /// The user's last message contains one of these, which are in lower case; any message if there are none.
    pub keywords: Vec<Box<str>>,
    /// Whether tools are offered.
    pub tools: Option<bool>,
    /// Whether there is a picture in the prompt.
    pub images: Option<bool>,
}

impl Choice {
    /// Whether who asks for `model` leaves the choice to the gateway.
    pub fn applies_to(&self, model: &[u8]) -> bool {
        self.applies_to.iter().any(|name| name.as_bytes() == model)
    }

    /// The request headers that rules look at, in lower case.
    pub fn headers(&self) -> impl Iterator<Item = &Box<str>> {
        self.rules.iter().filter_map(|rule| rule.header.as_ref().map(|(name, _)| name))
    }

    /// The model for a request.
    pub fn choose(&self, facts: &Facts, headers: &Headers) -> &str {
        let rule = self.rules.iter().find(|rule| rule.holds(facts, headers));
        rule.map_or(&self.default, |rule| &rule.model)
    }
}

impl Rule {
    fn holds(&self, facts: &Facts, headers: &Headers) -> bool {
        let header = self.header.as_ref().is_none_or(|(name, wanted)| {
            let is_wanted = |value| wanted.as_ref().is_none_or(|wanted| wanted.as_bytes() == value);
            headers.get(name).is_some_and(is_wanted)
        });
        header
            && (self.min_tokens..=self.max_tokens).contains(&facts.tokens)
            && self.tools.is_none_or(|tools| tools == facts.tools)
            && self.images.is_none_or(|images| images == facts.images)
            && (self.keywords.is_empty() || self.keywords.iter().any(|word| contains(&facts.said, word.as_bytes())))
    }

    /// Whether it holds whenever `other` does, so that `other` can never decide after it.
    pub fn covers(&self, other: &Self) -> bool {
        let header = self.header.as_ref().is_none_or(|(name, wanted)| {
            other.header.as_ref().is_some_and(|(same, value)| name == same && (wanted.is_none() || wanted == value))
        });
        let found = |word: &str| self.keywords.iter().any(|part| word.contains(&**part));
        header
            && self.min_tokens <= other.min_tokens
            && self.max_tokens >= other.max_tokens
            && (self.tools.is_none() || self.tools == other.tools)
            && (self.images.is_none() || self.images == other.images)
            && (self.keywords.is_empty() || !other.keywords.is_empty() && other.keywords.iter().all(|word| found(word)))
    }
}

fn contains(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len().max(1)).any(|window| window == word)
}
