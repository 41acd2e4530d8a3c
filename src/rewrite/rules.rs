//! Which model a request goes to.

use crate::schedule::Rng;

/// The rules of a configuration; a name has one, and so have all others together. Default: none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules(pub Vec<Rule>);

/// What becomes of one model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The name in the request. `None`: any that has no rule of its own.
    pub model: Option<String>,
    /// At least one.
    pub targets: Vec<Target>,
}

/// A model that gets a part of the requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The name that the servers know.
    pub model: String,
    /// Its share of the sum of all weights, 1 to 1,000,000.
    pub weight: u32,
}

impl Rules {
    /// There is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a rule is for `model` and for no other.
    pub fn name(&self, model: &str) -> bool {
        self.0.iter().any(|rule| rule.model.as_deref() == Some(model))
    }

    /// Where a request for `model` goes; `None` if no rule is for it. The same `draw` gives the same target.
    pub fn target(&self, model: &[u8], draw: u64) -> Option<&str> {
        let named = |rule: &&Rule| rule.model.as_ref().is_some_and(|name| name.as_bytes() == model);
        let rule = self.0.iter().find(named).or_else(|| self.0.iter().find(|rule| rule.model.is_none()))?;
        let total: u64 = rule.targets.iter().map(|target| u64::from(target.weight)).sum();
        let mut point = draw.checked_rem(total)?;
        for target in &rule.targets {
            match point.checked_sub(u64::from(target.weight)) {
                Some(beyond) => point = beyond,
                None => return Some(&target.model),
            }
        }
        None
    }
}

/// The draw of a request with this id: FNV-1a, mixed. No secret goes into it, so that a retry gets the same model from any
/// gateway.
pub fn draw(request_id: &[u8]) -> u64 {
    let fold = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    Rng::new(request_id.iter().fold(0xcbf2_9ce4_8422_2325, fold)).next_u64()
}
