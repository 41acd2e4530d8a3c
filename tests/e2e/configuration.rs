//! The shipped configuration, and those that must not start.

use std::{env, fs};

use anyhow::Result;
use serde_json::{Value, json};
use testbed::envoy::{at, module, validate};
use testbed::{Bootstrap, Envoy, Fleet};

#[test]
fn the_module_is_small_and_tells_nothing_of_the_machine_it_was_built_on() -> Result<()> {
    let module = fs::read(module()?)?;
    assert!(module.len() <= 700_000, "{} bytes", module.len());
    let home = env::var("HOME").unwrap_or_else(|_| "/home".to_owned());
    for path in [format!("{home}/"), format!("{}/", testbed::root().display())] {
        let found = module.windows(path.len()).any(|bytes| bytes == path.as_bytes());
        assert!(!found, "{path} is in it: build it with ./build.sh");
    }
    Ok(())
}

#[test]
fn envoy_accepts_the_shipped_configuration() -> Result<()> {
    validate(&Bootstrap::shipped()?)?;
    Ok(())
}

#[test]
fn the_shipped_configuration_holds_what_the_picker_needs() -> Result<()> {
    let shipped = Bootstrap::shipped()?;
    let of = |part: &str, pointer: &str| shipped.at(&format!("{part}/{pointer}")).cloned();
    for shared in ["vm_config", "configuration", "failure_policy", "reload_config"] {
        assert_eq!(of(at::SCRAPER, shared)?, of(at::PICKER, shared)?, "{shared}");
    }
    assert_eq!(of(at::PICKER, "failure_policy")?, "FAIL_RELOAD");
    assert_eq!(of(at::PICKER, "allow_on_headers_stop_iteration")?, true);

    let filters = of(at::HTTP, "http_filters")?;
    let names: Vec<_> = filters.as_array().unwrap().iter().map(|filter| filter["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["endpoint_picker", "envoy.filters.http.router"], "the picker comes directly before the router");

    let read = of(at::PICKER, "configuration/value/request/max_body_bytes")?;
    let buffered = of(at::LISTENER, "per_connection_buffer_limit_bytes")?;
    assert!(read.as_u64() < buffered.as_u64(), "a body being read must fit into the buffer");

    let routes = of(at::HTTP, "route_config/virtual_hosts")?.to_string();
    let scrape = of(at::PICKER, "configuration/value/scrape/cluster")?;
    assert!(!routes.contains(scrape.as_str().unwrap()), "a route to the scrape cluster is an open proxy");
    assert_eq!(shipped.at("/static_resources/clusters/1/name")?, &scrape);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_configuration_is_refused_with_its_place() -> Result<()> {
    let fleet = Fleet::start(2, sim::server::ServerConfig::default()).await?;
    let first = fleet.addresses()[0].to_string();
    let picker = || json!({ "type": "max-score-picker" });
    let profile = |scorer, picker| json!({ "scorers": [scorer], "picker": picker });
    let cases = [
        ("pool.endpoint", ("/pool/endpoint", json!([]))),
        ("pool.endpoints[1].address", ("/pool/endpoints/1/address", json!(first))),
        ("pool.endpoints[0].address", ("/pool/endpoints/0/address", json!("model-a:8000"))),
        ("pool.endpoints[0].port", ("/pool/endpoints/0/port", json!(8000))),
        ("profile: unknown profile \"expected-costs\"", ("/profile", json!("expected-costs"))),
        ("profile.scorers[0].weight", ("/profile", profile(json!({ "type": "queue-scorer", "weight": -1 }), picker()))),
        ("profile.scorers[0].type", ("/profile", profile(json!({ "type": "queue" }), picker()))),
        ("profile.picker", ("/profile", profile(json!({ "type": "queue-scorer" }), Value::Null))),
        ("profile.picker", ("/profile", profile(json!({ "type": "queue-scorer" }), json!([picker(), picker()])))),
        ("scrape.interval", ("/scrape/interval", json!("soon"))),
        ("failure_mode", ("/failure_mode", json!("fail-sometimes"))),
    ];
    for (place, (pointer, wrong)) in cases {
        let bootstrap = Bootstrap::new(fleet.addresses())?.setting(pointer, wrong)?;
        let refused = Envoy::start(&bootstrap).await.map(|_| ()).expect_err(place).to_string();
        assert!(refused.contains("configuration refused") && refused.contains(place), "{place}: {refused}");
    }
    Ok(())
}
