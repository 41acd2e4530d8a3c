//! Wrong names answered with the right ones.

use std::fmt::Write;

/// The end of a message about a wrong name: ``did you mean `queue`? Known here: `kv`, `queue` ``, or without the
/// question if nothing is near.
pub(crate) fn choices<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> String {
    let mut text = String::new();
    // A third of the letters may be wrong, or one: more would suggest names that have nothing in common.
    let tolerated = (wrong.chars().count() / 3).max(1);
    let lower = wrong.to_ascii_lowercase();
    let near = known.clone().into_iter().map(|name| (strsim::osa_distance(&lower, name), name)).min();
    match near.filter(|(distance, _)| *distance <= tolerated) {
        Some((_, name)) => {
            let _ = write!(text, "did you mean `{name}`? Known here: ");
        }
        None => text.push_str("known here: "),
    }
    for (i, name) in known.into_iter().enumerate() {
        let _ = write!(text, "{}`{name}`", if i == 0 { "" } else { ", " });
    }
    text
}
