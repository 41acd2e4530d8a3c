mod request;
mod restorer;
mod rules;

use super::*;

fn rule(model: Option<&str>, targets: &[(&str, u32)]) -> Rule {
    let targets = targets.iter().map(|(model, weight)| Target { model: (*model).into(), weight: *weight });
    Rule { model: model.map(Into::into), targets: targets.collect() }
}

#[test]
fn a_name_is_written_as_json_has_it() {
    for name in ["m", "", "org/model:7b", "a\"b\\c", "tab\there\u{1f}\n", "größe-模型"] {
        let read: String = serde_json::from_slice(&quoted(name.as_bytes())).unwrap();
        assert_eq!(read, name);
    }
}
