//! What a request is for, and so whether it may be shed.
//!
//! An objective is a name with a priority; a request names its own in a header. One with a priority below 0 may be shed:
//! while the pool is full (see [`crate::saturation`]) it is refused, so that those of others need not wait. Every other
//! request is placed whatever the load. A request that names no objective, or one that is not known, has priority 0.

use std::fmt;

use crate::headers::Headers;

/// The header that names the objective, and the one that did so earlier, which counts if the first is not there.
const OBJECTIVE: [&str; 2] = ["x-llm-d-inference-objective", "x-gateway-inference-objective"];

/// The header that names who the request is accounted to, and the one that did so earlier.
const FAIRNESS_ID: [&str; 2] = ["x-llm-d-inference-fairness-id", "x-gateway-inference-fairness-id"];

/// Bytes of a header that are shown in the log.
const SHOWN: usize = 64;

/// The objectives that requests can name.
#[derive(Debug, Default)]
pub struct Objectives(Vec<(Box<str>, i32)>);

/// What the log tells of a request beside its decision; nothing if there are no objectives.
#[derive(Debug)]
pub struct Account<'a> {
    objectives: &'a Objectives,
    headers: &'a Headers,
}

impl Objectives {
    /// Names and priorities, no name twice.
    pub fn new(objectives: impl IntoIterator<Item = (String, i32)>) -> Self {
        Self(objectives.into_iter().map(|(name, priority)| (name.into(), priority)).collect())
    }

    /// The request headers that matter. None as long as there are no objectives: each costs a call to the proxy.
    pub fn headers(&self) -> Vec<&str> {
        if self.0.is_empty() { Vec::new() } else { [OBJECTIVE, FAIRNESS_ID].concat() }
    }

    /// The priority of a request with these headers.
    pub fn priority(&self, headers: &Headers) -> i32 {
        let Some(asked) = first(headers, OBJECTIVE).filter(|_| !self.0.is_empty()) else { return 0 };
        self.0.iter().find(|(name, _)| name.as_bytes() == asked).map_or(0, |(_, priority)| *priority)
    }

    /// For the log.
    pub fn account<'a>(&'a self, headers: &'a Headers) -> Account<'a> {
        Account { objectives: self, headers }
    }
}

fn first<'a>(headers: &'a Headers, names: [&str; 2]) -> Option<&'a [u8]> {
    names.into_iter().find_map(|name| headers.get(name))
}

/// `, priority -10, fairness id tenant-a`. What the client wrote is escaped and cut: it must not forge lines of the log,
/// nor fill it.
impl fmt::Display for Account<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.objectives.0.is_empty() {
            return Ok(());
        }
        write!(f, ", priority {}", self.objectives.priority(self.headers))?;
        match first(self.headers, FAIRNESS_ID) {
            Some(id) => write!(f, ", fairness id {}", id.get(..SHOWN).unwrap_or(id).escape_ascii()),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn objectives() -> Objectives {
        Objectives::new([("batch".to_owned(), -10), ("chat".to_owned(), 5)])
    }

    fn headers(list: &[(&str, &[u8])]) -> Headers {
        list.iter().map(|(name, value)| ((*name).into(), value.to_vec())).collect()
    }

    #[test]
    fn a_request_has_the_priority_of_the_objective_it_names() {
        let of = |list: &[(&str, &[u8])]| objectives().priority(&headers(list));
        assert_eq!(of(&[("x-llm-d-inference-objective", b"batch")]), -10);
        assert_eq!(of(&[("x-gateway-inference-objective", b"chat")]), 5, "the older header");
        let both: [(&str, &[u8]); 2] =
            [("x-gateway-inference-objective", b"batch"), ("x-llm-d-inference-objective", b"chat")];
        assert_eq!(of(&both), 5, "the newer header counts");
    }

    #[test]
    fn no_objective_and_an_unknown_one_are_priority_zero() {
        for value in [&b"Batch"[..], b"", b"\xff\xfe", b"batch ", &[b'x'; 100_000]] {
            let headers = headers(&[("x-llm-d-inference-objective", value)]);
            assert_eq!(objectives().priority(&headers), 0, "{value:?}");
        }
        assert_eq!(objectives().priority(&Headers::default()), 0);
    }

    #[test]
    fn no_header_is_wanted_as_long_as_there_are_no_objectives() {
        assert_eq!(Objectives::default().headers(), [""; 0]);
        assert_eq!(objectives().headers().len(), 4);
    }

    #[test]
    fn what_a_client_writes_cannot_forge_or_fill_the_log() {
        let (objectives, evil) = (objectives(), [b"a\nb\xff".as_slice(), &[b'x'; 1000]].concat());
        let headers = headers(&[("x-llm-d-inference-fairness-id", &evil)]);
        let line = objectives.account(&headers).to_string();
        assert!(line.starts_with(r", priority 0, fairness id a\nb\xffxxx"), "{line}");
        assert!(line.len() < 120);
        assert_eq!(Objectives::default().account(&headers).to_string(), "");
    }
}
