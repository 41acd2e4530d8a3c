//! Objectives: what requests are for.

use serde::Deserialize;

use super::ConfigError;
use super::whole::Signed;
use crate::objectives::Objectives;

/// The longest name of an objective, in bytes: that of a Kubernetes resource.
const LONGEST: usize = 253;

/// What requests are for. A request names its objective in the header `x-llm-d-inference-objective`, or in the older
/// `x-gateway-inference-objective`.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenObjective {
    /// What the header says: 1 to 253 visible ASCII characters. No name twice.
    name: String,
    /// Below 0: requests may be shed, that is answered with 429 while the pool is full. 0 and above: they never are.
    #[serde(default = "zero")]
    priority: Signed<-1000, 1000>,
}

fn zero() -> Signed<-1000, 1000> {
    Signed::of(0)
}

/// Checks the names. Paths of errors begin at the list.
pub(super) fn resolve(written: Vec<WrittenObjective>) -> Result<Objectives, ConfigError> {
    for (i, WrittenObjective { name, .. }) in written.iter().enumerate() {
        let wrong = |message: String| Err(ConfigError::at(format!("[{i}].name"), message));
        if !(1..=LONGEST).contains(&name.len()) || !name.bytes().all(|b| b.is_ascii_graphic()) {
            return wrong(format!("{name:?} is not a name of 1 to {LONGEST} visible ASCII characters"));
        }
        if let Some(first) = written.iter().take(i).position(|other| other.name == *name) {
            return wrong(format!("{name} is the name of objectives[{first}] already"));
        }
    }
    Ok(Objectives::new(written.into_iter().map(|objective| (objective.name, objective.priority.get()))))
}

#[cfg(test)]
mod tests {
    use super::super::load;
    use crate::headers::Headers;

    fn with(objectives: &str) -> String {
        format!(r#"{{"pool":{{"endpoints":[{{"address":"10.0.0.1:8000"}}]}},"objectives":{objectives}}}"#)
    }

    #[track_caller]
    fn refused(objectives: &str, message: &str) {
        assert_eq!(load(with(objectives).as_bytes()).unwrap_err().to_string(), message);
    }

    #[test]
    fn a_priority_out_of_range_is_refused() {
        for priority in ["-1001", "1001", "-1e300", "0.5", "4294967295", "9223372036854775808"] {
            refused(
                &format!(r#"[{{"name":"a"}},{{"name":"b","priority":{priority}}}]"#),
                &format!("objectives[1].priority: {priority} is not a whole number from -1000 to 1000"),
            );
        }
        refused(
            r#"[{"name":"a","priority":"low"}]"#,
            r#"objectives[0].priority: invalid type: string "low", expected a whole number from -1000 to 1000"#,
        );
    }

    #[test]
    fn a_name_twice_or_none_is_refused() {
        refused(
            r#"[{"name":"a"},{"name":"b"},{"name":"a"}]"#,
            "objectives[2].name: a is the name of objectives[0] already",
        );
        refused(r#"[{"name":""}]"#, r#"objectives[0].name: "" is not a name of 1 to 253 visible ASCII characters"#);
        refused(
            r#"[{"name":"a b"}]"#,
            r#"objectives[0].name: "a b" is not a name of 1 to 253 visible ASCII characters"#,
        );
        refused(r#"[{"priority":1}]"#, "objectives[0]: missing field `name`");
        refused(r#"{"batch":-1}"#, "objectives: invalid type: object, expected a list");
    }

    #[test]
    fn priorities_are_taken_to_the_ends_of_their_range_and_as_floats() {
        for (text, priority) in [("-1000", -1000), ("1000.0", 1000), ("-1e1", -10)] {
            let json = with(&format!(r#"[{{"name":"a","priority":{text}}}]"#));
            let config = load(json.as_bytes()).unwrap();
            let headers: Headers = [("x-llm-d-inference-objective".into(), b"a".to_vec())].into_iter().collect();
            assert_eq!(config.objectives.priority(&headers), priority);
        }
    }
}
