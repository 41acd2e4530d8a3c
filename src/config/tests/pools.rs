use super::*;

/// A pool with one endpoint, whose address ends with `n`.
fn pool(n: usize, more: &str) -> String {
    format!(r#"{{"name": "pool-{n}", "endpoints": [{{"address": "10.0.0.{n}:8000"}}]{more}}}"#)
}

fn pools(list: &[String]) -> String {
    format!(r#"{{"pools": [{}]}}"#, list.join(","))
}

#[track_caller]
fn all(json: &str) -> Pools {
    load_pools(json.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{json}"))
}

fn pool_of(pools: &Pools, model: &str) -> Option<usize> {
    pools.routes.served(model.as_bytes()).map(|served| served.pool).or(pools.routes.default)
}

#[test]
fn one_pool_needs_no_look_at_the_body() {
    let pools = all(&with(""));
    assert_eq!(pools.configs.len(), 1);
    assert_eq!(pool_of(&pools, "anything"), Some(0));
    let body = br#"{"model": "m"}"#;
    let route = |routes: Routes| routes.route(body).unwrap().model;
    assert_eq!(route(pools.routes), None);
    assert_eq!(route(all(&with(r#", "model_headers": true"#)).routes).as_deref(), Some(&b"m"[..]));
}

#[test]
fn each_model_and_adapter_has_its_pool() {
    let pools = all(&pools(&[
        pool(1, r#", "models": ["llama", "llama-long"], "adapters": {"sql": "llama"}"#),
        pool(2, ""),
        pool(3, r#", "models": ["qwen"]"#),
    ]));
    let names: Vec<_> = pools.configs.iter().map(|config| &*config.pool.name).collect();
    assert_eq!(names, ["pool-1", "pool-2", "pool-3"]);
    for (model, pool) in [("llama", 0), ("llama-long", 0), ("sql", 0), ("qwen", 2), ("other", 1)] {
        assert_eq!(pool_of(&pools, model), Some(pool), "{model}");
    }
    for (model, base) in [("sql", "llama"), ("llama", "llama"), ("other", "other")] {
        assert_eq!(pools.routes.base(model.as_bytes()), base.as_bytes(), "{model}");
    }
}

#[test]
fn every_pool_has_the_settings_of_all_and_can_have_a_profile_of_its_own() {
    let json = format!(
        r#"{{"scrape": {{"interval": "1s"}}, "failure_mode": "fail-open", "profile": "round-robin", "pools": [{}, {}]}}"#,
        pool(1, r#", "models": ["a"]"#),
        pool(2, r#", "models": ["b"], "profile": "least-request""#),
    );
    let [one, two] = &all(&json).configs[..] else { panic!("two pools") };
    for config in [one, two] {
        assert_eq!(config.scrape.interval, Duration::from_secs(1));
        assert_eq!(config.failure_mode, FailureMode::FailOpen);
    }
    let alone = |profile: &str| format!("{:?}", good(&with(&format!(r#", "profile": "{profile}""#))).profile);
    assert_eq!(format!("{:?}", one.profile), alone("round-robin"));
    assert_eq!(format!("{:?}", two.profile), alone("least-request"));
}

#[test]
fn either_one_pool_or_several() {
    let both = format!(r#"{{"pool": {0}, "pools": [{0}]}}"#, pool(1, ""));
    refused(both, "pools: either `pool` or `pools` can be given, not both");
    let none = r#"`pool` is missing, or `pools` with at least one; the least is {"pool": {"endpoints": [{"address": "10.0.0.1:8000"}]}}"#;
    refused(r#"{"pools": []}"#, none);
    refused(r#"{"pool": null}"#, none);
}

#[test]
fn a_name_is_given_once_over_all_pools() {
    let models = |one: &str, other: &str| pools(&[pool(1, &format!(", {one}")), pool(2, &format!(", {other}"))]);
    refused(
        models(r#""models": ["a", "b"]"#, r#""models": ["c", "b"]"#),
        r#"pools[1].models[1]: "b" is pools[0].models[1] already"#,
    );
    refused(
        models(r#""models": ["a"], "adapters": {"x": "a"}"#, r#""models": ["x"]"#),
        r#"pools[1].models[0]: "x" is pools[0].adapters.x already"#,
    );
    refused(
        models(r#""models": ["a"], "adapters": {"a": "a"}"#, r#""models": ["b"]"#),
        r#"pools[0].adapters.a: "a" is pools[0].models[0] already"#,
    );
    refused(
        pools(&[pool(1, ""), pool(2, "")]),
        "pools[1].models: missing; only one pool can take all models that no other names, and pools[0] does",
    );
    let same = pool(1, r#", "models": ["a"]"#);
    let other = same.replace("10.0.0.1", "10.0.0.2").replace("\"a\"", "\"b\"");
    refused(pools(&[same, other]), "pools[1].name: pools[0] is named pool-1 already; choose another name");
}

#[test]
fn an_endpoint_is_in_one_pool() {
    let other = pool(1, r#", "models": ["b"]"#).replace("pool-1", "other");
    refused(
        pools(&[pool(1, r#", "models": ["a"]"#), other]),
        "pools[1].endpoints[0].address: 10.0.0.1:8000 is the address of pools[0].endpoints[0] already",
    );
}

#[test]
fn what_is_wrong_in_a_pool_is_named_with_its_place() {
    for (more, message) in [
        (r#", "models": []"#, "pools[1].models: at least one model is needed"),
        (r#", "models": [""]"#, r#"pools[1].models[0]: "" is not a name of 1 to 256 bytes without control characters"#),
        (r#", "models": "b""#, r#"pools[1].models: invalid type: string "b", expected a list"#),
        (
            r#", "models": ["b"], "adapters": {"x": "a"}"#,
            r#"pools[1].adapters.x: its base model "a" is not among `models`"#,
        ),
        (
            r#", "adapters": {"": "a"}"#,
            r#"pools[1].adapters.: "" is not a name of 1 to 256 bytes without control characters"#,
        ),
        (r#", "profile": {"scorers": []}"#, "pools[1].profile: missing field `picker`"),
        (
            r#", "profile": {"picker": {"type": "random-picker", "parameters": {"maxNumOfEndpoints": 0}}}"#,
            "pools[1].profile.picker.parameters.maxNumOfEndpoints: 0 is not a whole number of at least 1",
        ),
    ] {
        let list = pools(&[pool(1, r#", "models": ["a"]"#), pool(2, more)]);
        assert_eq!(load_pools(list.as_bytes()).unwrap_err().to_string(), message);
    }
}

/// What works on one pool only, such as the simulator, says so.
#[test]
fn who_needs_a_single_pool_refuses_several() {
    refused(pools(&[pool(1, ""), pool(2, r#", "models": ["b"]"#)]), "pools: a single pool is needed here");
}

#[test]
fn pools_that_find_the_same_members_are_refused() {
    let finds = |n, more: &str| format!(r#"{{"name":"p{n}","discovery":{{"cluster":"c","admin_cluster":"a"}}{more}}}"#);
    let json = pools(&[finds(1, ""), finds(2, r#","models":["m"]"#)]);
    let error = load_pools(json.as_bytes()).unwrap_err().to_string();
    assert_eq!(error, "pools[1].discovery.cluster: pools[0] finds its members there already");
}

#[test]
fn the_tokens_of_one_pool_do_not_replace_those_of_another() {
    let session = |parameters: &str| {
        let profile = format!(
            r#","profile":{{"scorers":[{{"type":"session-affinity-scorer","parameters":{parameters}}}],"picker":{{"type":"random-picker"}}}}"#
        );
        let json = format!(r#"{{"pools":[{},{}]{profile}}}"#, pool(1, ""), pool(2, r#", "models": ["m"]"#));
        all(&json)
    };
    let headers = session("{}");
    assert_eq!(headers.configs[0].session.as_ref().unwrap().header(), "x-session-token-pool-1");
    let names = &headers.configs[1].request_headers;
    assert!(names.contains(&"x-session-token-pool-1".into()) && names.contains(&"x-session-token-pool-2".into()));
    let cookies = session(r#"{"cookie":"route"}"#);
    assert_ne!(cookies.configs[0].session, cookies.configs[1].session);
    let names = session(r#"{"strategy":"session_id"}"#);
    assert_eq!(names.configs[1].session.as_ref().unwrap().header(), "x-session-id", "which the client chose");
}

#[test]
fn inference_cannot_be_asked_whether_it_is_ready() {
    let json = with(r#", "health_path": "/v1/chat/completions""#);
    let error = load(json.as_bytes()).unwrap_err().to_string();
    assert_eq!(error, "health_path: inference requests have this path; choose another one");
}

#[test]
fn a_rewrite_that_a_choice_comes_before_is_refused() {
    let json = with(
        r#", "model_choice": {"rules": [], "default": "m"}, "model_rewrites": [{"model": "auto", "targets": [{"model": "m"}]}]"#,
    );
    let error = load(json.as_bytes()).unwrap_err().to_string();
    assert_eq!(error, "model_choice.applies_to[0]: the rule of `model_rewrites` for \"auto\" would never be reached");
}
