//! Who reads prompts and who generates answers: the label `llm-d.ai/role` of an endpoint.
//!
//! Values and their meaning are those of llm-d's endpoint picker. An endpoint without the label does both for a request of
//! its own, but reads no prompts for others.

use std::collections::BTreeMap;

use super::Candidate;

/// The label.
const ROLE: &str = "llm-d.ai/role";

impl Candidate<'_> {
    /// Whether it generates answers: it says so, or says nothing.
    pub fn decodes(&self) -> bool {
        decodes(self.labels)
    }

    /// Whether it reads prompts whose answers others generate: it says so.
    pub fn prefills(&self) -> bool {
        has_role(self.labels, &["prefill", "encode-prefill", "prefill-decode", "both", "encode-prefill-decode"])
            .unwrap_or(false)
    }
}

/// Whether an endpoint with these labels generates answers.
pub(crate) fn decodes(labels: &BTreeMap<String, String>) -> bool {
    has_role(labels, &["decode", "prefill-decode", "both", "encode-prefill-decode"]).unwrap_or(true)
}

/// `None`: it has no role.
fn has_role(labels: &BTreeMap<String, String>, roles: &[&str]) -> Option<bool> {
    labels.get(ROLE).map(|role| roles.contains(&role.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_says_what_an_endpoint_does() {
        for (role, decodes, prefills) in [
            (None, true, false),
            (Some("decode"), true, false),
            (Some("prefill"), false, true),
            (Some("encode-prefill"), false, true),
            (Some("prefill-decode"), true, true),
            (Some("both"), true, true),
            (Some("encode-prefill-decode"), true, true),
            (Some("encode"), false, false),
            (Some("Decode"), false, false),
            (Some(""), false, false),
        ] {
            let labels = BTreeMap::from_iter(role.map(|role| (ROLE.to_owned(), role.to_owned())));
            let candidate = Candidate { labels: &labels, ..Candidate::named("10.0.0.1:8000") };
            assert_eq!((candidate.decodes(), candidate.prefills()), (decodes, prefills), "{role:?}");
        }
    }
}
