//! The profiles that are ready.

use std::collections::HashMap;

use anyhow::Result;
use endpoint_picker::schedule::ready::READY;
use serde_json::json;
use sim::server::ServerConfig;
use testbed::Fleet;

use crate::{Stack, ask, chat};

#[tokio::test(flavor = "multi_thread")]
async fn every_ready_profile_routes() -> Result<()> {
    for ready in READY {
        let fleet = Fleet::start(4, ServerConfig { speedup: 20.0, ..ServerConfig::default() }).await?;
        let named = |bootstrap: testbed::Bootstrap| bootstrap.setting("/profile", json!(ready.name));
        let stack = Stack::with_workers(1, fleet, named).await?;
        let mut counts = HashMap::new();
        for question in 0..8 {
            let answer = ask(&stack.client, "/v1/chat/completions", &chat(&format!("question {question}"))).await?;
            *counts.entry(answer.served_by()?).or_insert(0) += 1;
        }
        assert_eq!(stack.envoy.picker_stat("picks_total").await?, 8, "{}", ready.name);
        let twice_each = counts.len() == 4 && counts.values().all(|count| *count == 2);
        assert!(twice_each || ready.name != "round-robin", "{counts:?}");
    }
    Ok(())
}
