use super::*;

fn rules() -> Rules {
    Rules(vec![rule(Some("m"), &[("new \"7b\"", 1)]), rule(Some("same"), &[("same", 1)])])
}

/// The body that goes on in place of this one.
#[track_caller]
fn rewritten(body: impl AsRef<[u8]>) -> String {
    match rewrite(&rules(), body.as_ref(), 0) {
        Outcome::Rewritten(Rewritten { body, model, target }) => {
            assert_eq!((&*model, &*target), (&b"m"[..], "new \"7b\""));
            String::from_utf8(body).unwrap()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_name_is_replaced_and_not_a_byte_beside_it() {
    for body in [
        r#"{"model":"m"}"#,
        " { \"messages\" : [ {\"role\":\"user\",\"content\":\"\\\"model\\\":\\\"m\\\" \\ud83d\"} ] ,\r\n\t\"model\" :\t\"m\" , \"n\":1.50e+3 }\n",
        "\u{feff}{\"tools\":[{\"function\":{\"parameters\":{\"model\":\"x\"}}}],\"model\":\"m\"}",
        r#"{"metadata":{"model":"m2"},"model":"m","input":["model","m2"]} trailing"#,
        r#"{"model":"m","messages":"#,
        r#"{,,"model":"m","stream":tr"#,
    ] {
        assert_eq!(rewritten(body), body.replacen(r#""m""#, r#""new \"7b\"""#, 1), "{body}");
    }
}

#[test]
fn every_name_at_the_top_is_replaced_since_parsers_differ_on_which_counts() {
    assert_eq!(
        rewritten(r#"{"model":"first","model":5,"x":{"model":"m"},"mod\u0065l":"\u006d"}"#),
        r#"{"model":"new \"7b\"","model":"new \"7b\"","x":{"model":"m"},"mod\u0065l":"new \"7b\""}"#
    );
    assert_eq!(
        rewritten(r#"{"model":{"a":1},"model":null,"model":"m","model":"#),
        r#"{"model":"new \"7b\"","model":"new \"7b\"","model":"new \"7b\"","model":"#
    );
}

#[test]
fn what_names_no_model_stays() {
    for body in [
        "",
        "[]",
        "null",
        "\"model\"",
        "[{\"model\":\"m\"}]",
        "{}",
        "{\"model\"",
        "{\"model\":",
        "{\"model\":\"m",
        "{\"model\":\"m\\",
        "{\"model\":5}",
        "{\"model\":null}",
        "{\"model\":\"\"}",
        "{\"model\":[\"m\"]}",
        "{\"x\":{\"model\":\"m\"}}",
        "{\"model\":\"m\",\"model\":\"n",
        "\u{1f}\u{8b}",
    ] {
        assert_eq!(rewrite(&rules(), body.as_bytes(), 0), Outcome::NoModel, "{body}");
    }
    let long = format!(r#"{{"model":"{}"}}"#, "x".repeat(5000));
    assert_eq!(rewrite(&rules(), long.as_bytes(), 0), Outcome::NoModel);
}

#[test]
fn what_has_the_right_name_already_or_no_rule_stays() {
    for body in [r#"{"model":"same"}"#, r#"{"model":"s\u0061me"}"#, r#"{"model":"other"}"#] {
        assert_eq!(rewrite(&rules(), body.as_bytes(), 0), Outcome::Kept, "{body}");
    }
}

#[test]
fn a_body_cut_anywhere_gives_the_start_of_the_whole() {
    let body = r#"{"a":[1,{"b":"\"}"}],"model" : "m","messages":[{"role":"user","content":"hi \u00e4"}],"t":0.5}"#;
    let (whole, name_ends) = (rewritten(body), body.find("\"m\"").unwrap() + 3);
    for end in 0..body.len() {
        let (cut, _) = body.split_at(end);
        if end < name_ends {
            assert_eq!(rewrite(&rules(), cut.as_bytes(), 0), Outcome::NoModel, "{cut}");
        } else {
            let start = rewritten(cut);
            assert!(whole.starts_with(&start), "{start}");
            assert_eq!(start.len() - end, whole.len() - body.len());
        }
    }
}

#[test]
fn a_body_with_a_host_of_names_does_not_grow_by_each() {
    let body = |count| format!("{{{}\"a\":1}}", r#""model":"m","#.repeat(count));
    let rule = Rules(vec![Rule { model: None, targets: vec![Target { model: "long".repeat(64), weight: 1 }] }]);
    assert!(matches!(rewrite(&rule, body(16).as_bytes(), 0), Outcome::Rewritten(_)));
    assert_eq!(rewrite(&rule, body(17).as_bytes(), 0), Outcome::NoModel);
}
