//! The model's name in a request.

use std::ops::Range;

use super::{Rules, quoted};
use crate::prompt::json::{Cursor, Value};
use crate::prompt::name;

/// More of them name no model: a body must not grow without bound.
const MOST_NAMES: usize = 16;

/// What becomes of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It stays: no rule is for its model, or the model is the target already.
    Kept,
    /// It stays: it is no JSON object, or names no model in the part that was read.
    NoModel,
    /// Another goes on in its place.
    Rewritten(Rewritten),
}

/// A body that names another model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rewritten {
    /// What was read, with the new name in it.
    pub body: Vec<u8>,
    /// The client's name.
    pub model: Box<[u8]>,
    /// The new one.
    pub target: String,
}

/// Applies `rules` to a body, or to the first part of one; see [`rename`].
pub fn rewrite(rules: &Rules, body: &[u8], draw: u64) -> Outcome {
    rename(body, |model| rules.target(model, draw))
}

/// Puts what `target` says of the model in its place in a body, or in the first part of one.
///
/// Of several `model` members the last one counts, as in the parsers of most servers, and all are replaced, since others
/// take the first. Not a byte beside them changes. A name that the part ends in is no name yet.
pub fn rename<'t>(body: &[u8], target: impl FnOnce(&[u8]) -> Option<&'t str>) -> Outcome {
    let mut named = None;
    let mut places: Vec<(Range<usize>, Value<'_>)> = Vec::new();
    let mut cursor = Cursor::new(body);
    if cursor.peek() == Some(b'{') {
        cursor.enter();
        while let Some((key, value)) = cursor.member() {
            if key.raw == b"model" || !key.is_plain() && key.to_vec() == b"model" {
                let end = body.len() - cursor.remaining();
                named = Some(value);
                places.push((end.saturating_sub(value.raw.len())..end, value));
            }
        }
    }
    // Nobody means so many, and each may grow.
    if places.len() > MOST_NAMES {
        return Outcome::NoModel;
    }
    let Some(model) = name(named) else { return Outcome::NoModel };
    let Some(target) = target(&model) else { return Outcome::Kept };
    places.retain(|(_, value)| !value.cut && name(Some(*value)).as_deref() != Some(target.as_bytes()));
    if places.is_empty() {
        return Outcome::Kept;
    }
    let new = quoted(target.as_bytes());
    let mut rewritten = Vec::with_capacity(body.len() + places.len() * new.len());
    let mut copied = 0;
    for (place, _) in places {
        rewritten.extend_from_slice(body.get(copied..place.start).unwrap_or_default());
        rewritten.extend_from_slice(&new);
        copied = place.end;
    }
    rewritten.extend_from_slice(body.get(copied..).unwrap_or_default());
    Outcome::Rewritten(Rewritten { body: rewritten, model, target: target.into() })
}
