//! Conformance tests of the Gateway API Inference Extension that need no Kubernetes, under their names.
//!
//! What each of them asks for is in `docs/conformance.md`. A pod is a simulated server here, a gateway a listener, an
//! `InferencePool` a pool.
#![allow(non_snake_case)]

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};
use futures_util::future::try_join_all;
use reqwest::Method;
use serde_json::{Value, json};
use sim::server::ServerConfig;
use testbed::envoy::{at, validate};
use testbed::{Answer, Bootstrap, Client, Envoy, Fleet};

use crate::{Stack, chat, words};

const PATH: &str = "/v1/chat/completions";
const SERVED: &str = "x-conformance-test-served-endpoint";
const SELECTION: &str = "test-epp-endpoint-selection";

fn quick() -> ServerConfig {
    ServerConfig { speedup: 20.0, ..ServerConfig::default() }
}

/// Who served `count` requests, ten at a time.
async fn served(
    client: &Client,
    path: &str,
    count: usize,
    selection: Option<&str>,
) -> Result<HashMap<SocketAddr, usize>> {
    let mut counts = HashMap::new();
    for round in 0..count / 10 {
        let answers = (0..10).map(|at| {
            let mut request = client.request(Method::POST, path).json(&chat(&words(10 * round + at, 20)));
            if let Some(selection) = selection {
                request = request.header(SELECTION, selection);
            }
            Answer::to(request)
        });
        for answer in try_join_all(answers).await? {
            ensure!(answer.status == 200, "{answer:?}");
            *counts.entry(answer.served_by()?).or_default() += 1;
        }
    }
    Ok(counts)
}

fn set(servers: impl IntoIterator<Item = SocketAddr>) -> HashSet<SocketAddr> {
    servers.into_iter().collect()
}

/// Of these servers, as a configuration has them.
fn endpoints(servers: &[SocketAddr]) -> Value {
    servers.iter().map(|server| json!({ "address": server.to_string(), "engine": "vllm" })).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn EppUnAvailableFailOpen() -> Result<()> {
    let fleet = Fleet::start(2, quick()).await?;
    // The picker knows one server that is not there, and nothing of those that are: as good as gone.
    let gone = json!([{ "address": "127.0.0.1:1" }]);
    let healthy =
        json!({ "filters": [{ "type": "header-based-testing-filter" }], "picker": { "type": "random-picker" } });
    let bootstrap =
        Bootstrap::new(fleet.addresses())?.setting("/pool/endpoints", gone)?.setting("/profile", healthy)?;
    let envoy = Envoy::start(&bootstrap.fail_open()?).await?;
    let client = envoy.client();
    let counts = served(&client, PATH, 20, Some("127.0.0.1:2")).await?;
    assert_eq!(set(counts.into_keys()), set(fleet.addresses().iter().copied()));
    assert!(envoy.picker_stat("failed_open_total").await? >= 20);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn GatewayDestinationEndpointServed() -> Result<()> {
    let stack = Stack::with(quick(), |bootstrap| bootstrap.setting("/served_header", json!(SERVED))).await?;
    for question in 0..20 {
        let answer = stack.client.post(PATH, &chat(&words(question, 20))).await?;
        assert_eq!(answer.header(SERVED), Some(&*answer.served_by()?.to_string()));
    }
    // As the picker knows it, and not as a server or a client says.
    let request = stack.client.request(Method::GET, "/v1/models").header(SERVED, "10.0.0.1:3000");
    let answer = Answer::to(request).await?;
    assert_eq!(answer.header(SERVED), Some(&*answer.served_by()?.to_string()));
    Ok(())
}

/// With the filter that lets a test choose, before the plugins of the default profile.
fn selectable(bootstrap: Bootstrap) -> Result<Bootstrap> {
    let profile = json!({
        "filters": [{ "type": "header-based-testing-filter" }, { "type": "healthy" }],
        "scorers": [{ "type": "expected-cost-scorer" }],
        "picker": { "type": "max-score-picker" },
    });
    bootstrap.setting("/profile", profile)
}

#[tokio::test(flavor = "multi_thread")]
async fn GatewayFollowingEPPRouting() -> Result<()> {
    let stack = Stack::with(quick(), selectable).await?;
    for selected in [1, 2, 4] {
        let selected = &stack.fleet.addresses()[..selected];
        let selection = selected.iter().map(SocketAddr::to_string).collect::<Vec<_>>().join(",");
        let counts = served(&stack.client, PATH, 100, Some(&selection)).await?;
        assert_eq!(set(counts.into_keys()), set(selected.iter().copied()), "all of them and no others: {selection}");
    }
    Ok(())
}

/// Ranks of one data-parallel server have one IP and a port each.
#[tokio::test(flavor = "multi_thread")]
async fn GatewayFollowingEPPRoutingDP() -> Result<()> {
    let stack = Stack::with(quick(), selectable).await?;
    for rank in stack.fleet.addresses() {
        let counts = served(&stack.client, PATH, 20, Some(&rank.to_string())).await?;
        assert_eq!(set(counts.into_keys()), set([*rank]));
    }
    let all = stack.fleet.addresses().iter().copied();
    assert_eq!(
        set(served(&stack.client, PATH, 100, Some("127.0.0.1")).await?.into_keys()),
        set(all),
        "every rank of the IP"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn GatewayWeightedAcrossTwoInferencePools() -> Result<()> {
    let fleet = Fleet::start(4, ServerConfig { enforce_models: false, ..quick() }).await?;
    let (primary, secondary) = fleet.addresses().split_at(2);
    let pools = json!([
        { "name": "primary", "models": ["any"], "endpoints": endpoints(primary) },
        { "name": "secondary", "models": ["other"], "endpoints": endpoints(secondary) },
    ]);
    let targets = json!([{ "targets": [{ "model": "any", "weight": 70 }, { "model": "other", "weight": 30 }] }]);
    let bootstrap = Bootstrap::new(fleet.addresses())?.pools(pools)?.setting("/model_rewrites", targets)?;
    let envoy = Envoy::start(&bootstrap).await?;
    envoy.picker_stat_reaches("scrapes_read_total", 8).await?;
    let counts = served(&envoy.client(), PATH, 200, None).await?;
    let first: usize = primary.iter().filter_map(|server| counts.get(server)).sum();
    assert!((120..=160).contains(&first), "{first} of 200 are not 70 %");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn HTTPRouteMultipleGatewaysDifferentPools() -> Result<()> {
    let fleet = Fleet::start(4, quick()).await?;
    let (primary, secondary) = fleet.addresses().split_at(2);
    let bootstrap = Bootstrap::new(fleet.addresses())?.setting("/pool/endpoints", endpoints(primary))?;
    // A second listener, and a second scraper, with a pool of their own.
    let second = |pointer: &str, plugin: &str| -> Result<Value> {
        let mut copy = bootstrap.at(pointer)?.clone();
        let pool = json!({ "name": "secondary", "endpoints": endpoints(secondary) });
        *copy.pointer_mut(&format!("{plugin}/configuration/value/pool")).context("pool")? = pool;
        Ok(copy)
    };
    let mut listener = second(at::LISTENER, at::PICKER.strip_prefix(at::LISTENER).context("picker")?)?;
    *listener.pointer_mut("/name").context("name")? = json!("second");
    let scraper = second("/bootstrap_extensions/0", "/typed_config/config")?;
    let both = |first: &str, second: Value| Ok::<_, anyhow::Error>(json!([bootstrap.at(first)?, second]));
    let scrapers = both("/bootstrap_extensions/0", scraper)?;
    let listeners = both(at::LISTENER, listener)?;
    let bootstrap = bootstrap.set("/bootstrap_extensions", scrapers)?.set("/static_resources/listeners", listeners)?;

    let envoy = Envoy::start(&bootstrap).await?;
    envoy.picker_stat_reaches("scrapes_read_total", 8).await?;
    let listening: Value = serde_json::from_str(&envoy.admin("/listeners?format=json").await?)?;
    let statuses = listening["listener_statuses"].as_array().context("listeners")?;
    let second = statuses.iter().find(|status| status["name"] == "second").context("the second")?;
    let port = second.pointer("/local_address/socket_address/port_value").and_then(Value::as_u64).context("port")?;
    let second = Client::new(SocketAddr::from(([127, 0, 0, 1], u16::try_from(port)?)));
    for (client, pool) in [(envoy.client(), primary), (second, secondary)] {
        assert_eq!(set(served(&client, PATH, 40, None).await?.into_keys()), set(pool.iter().copied()));
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn HTTPRouteMultipleRulesDifferentPools() -> Result<()> {
    let fleet = Fleet::start(4, quick()).await?;
    let (primary, secondary) = fleet.addresses().split_at(2);
    let bootstrap = Bootstrap::new(fleet.addresses())?;
    let filters = format!("{}/http_filters", at::HTTP);
    // A picker for each path, which requests for the other one pass by.
    let picker = |name: &str, pool: &[SocketAddr], not: &str| -> Result<Value> {
        let mut wasm = bootstrap.at(&format!("{filters}/0"))?.clone();
        let pool = json!({ "name": name, "endpoints": endpoints(pool) });
        *wasm.pointer_mut("/typed_config/config/configuration/value/pool").context("pool")? = pool;
        let path = json!({
            "@type": "type.googleapis.com/envoy.type.matcher.v3.HttpRequestHeaderMatchInput", "header_name": ":path",
        });
        let skip =
            json!({ "@type": "type.googleapis.com/envoy.extensions.filters.common.matcher.action.v3.SkipFilter" });
        Ok(json!({ "name": name, "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.common.matching.v3.ExtensionWithMatcher",
            "extension_config": wasm,
            "xds_matcher": { "matcher_list": { "matchers": [{
                "predicate": { "single_predicate": {
                    "input": { "name": "path", "typed_config": path }, "value_match": { "prefix": not },
                } },
                "on_match": { "action": { "name": "skip", "typed_config": skip } },
            }] } },
        } }))
    };
    let all = json!([
        picker("primary", primary, "/secondary/")?,
        picker("secondary", secondary, "/primary/")?,
        bootstrap.at(&format!("{filters}/1"))?,
    ]);
    let routes = format!("{}/route_config/virtual_hosts/0/routes", at::HTTP);
    let route = |prefix: &str| -> Result<Value> {
        let mut route = bootstrap.at(&format!("{routes}/0"))?.clone();
        route["match"]["prefix"] = json!(prefix);
        route["route"]["prefix_rewrite"] = json!("/");
        Ok(route)
    };
    let rules = json!([route("/primary/")?, route("/secondary/")?]);
    let bootstrap = bootstrap.set(&filters, all)?.set(&routes, rules)?.without_scraper()?;

    let envoy = Envoy::start(&bootstrap).await?;
    envoy.picker_stat_reaches("scrapes_read_total", 8).await?;
    for (prefix, pool) in [("/primary", primary), ("/secondary", secondary)] {
        let counts = served(&envoy.client(), &format!("{prefix}{PATH}"), 40, None).await?;
        assert_eq!(set(counts.into_keys()), set(pool.iter().copied()), "{prefix}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn InferencePoolAppProtocol() -> Result<()> {
    let http =
        "typed_extension_protocol_options/envoy.extensions.upstreams.http.v3.HttpProtocolOptions/explicit_http_config";
    for (protocol, options) in [("HTTP/1.1", "http_protocol_options"), ("HTTP/2", "http2_protocol_options")] {
        let speak = |bootstrap: Bootstrap| {
            let shown = json!([{ "header": { "key": "x-upstream-protocol", "value": "%UPSTREAM_PROTOCOL%" } }]);
            bootstrap
                .set(&format!("{}/{http}", at::CLUSTER), json!({ options: {} }))?
                .set(&format!("{}/route_config/response_headers_to_add", at::HTTP), shown)
        };
        let stack = Stack::with(quick(), speak).await?;
        let answer = stack.client.post(PATH, &chat("Hello")).await?;
        answer.served_by()?;
        assert_eq!((answer.status.as_u16(), answer.header("x-upstream-protocol")), (200, Some(protocol)));
    }
    Ok(())
}

/// There is no service to get wrong. What is wrong with the filter's configuration is told, and Envoy does not take it.
#[tokio::test(flavor = "multi_thread")]
async fn InferencePoolInvalidEPPService() -> Result<()> {
    let wrong = Bootstrap::new(&[SocketAddr::from(([127, 0, 0, 1], 8000))])?;
    let wrong = wrong.setting("/pool/endpoints/0/address", json!("epp.default.svc:9002"))?;
    let refusal = validate(&wrong).err().context("a name for an address was taken")?.to_string();
    assert!(refusal.contains("pool.endpoints[0].address"), "{refusal}");
    Ok(())
}
