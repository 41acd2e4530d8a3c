//! How the servers' metrics are read.

use super::engine::WrittenEngine;
use super::{ConfigError, Whole};
use crate::period::{Period, Written};
use crate::scrape::Settings;
use serde::Deserialize;
use std::time::Duration;

/// How the metrics of the servers are read.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(super) struct WrittenScrape {
    /// How often each endpoint is asked. Scrapes are spread over the interval, and one endpoint is never asked again
    /// while an answer is due. With more servers than one thread can read in that time, all are asked less often.
    interval: Period<20, 60_000>,
    /// How old a signal may be and still be believed; at least twice `interval`, since a single late answer would else
    /// make a healthy server look unknown. An endpoint that has not answered at all for so long counts as unhealthy; an
    /// answer is awaited for half of it. If left out, it grows with `interval` where 2s would be too short.
    #[cfg_attr(feature = "schema", schemars(extend("default" = "2s")))]
    stale_after: Option<Period<40, 600_000>>,
    /// After how many scrapes in a row an endpoint counts as unhealthy that were refused or answered with a server error
    /// (5xx). One that is merely late with its answers may be busy: that counts only after `stale_after`.
    unhealthy_after: Whole<1, 1000>,
    /// The name of the cluster in Envoy's configuration through which the scrapes go. Kong does not use it.
    cluster: String,
    /// The longest metrics text, in bytes. A longer one is not read, and the server's signals age.
    max_text_bytes: Whole<4096, 67_108_864>,
    /// Engines that are not built in, for use in `pool.endpoints[].engine`.
    pub(super) engines: Vec<WrittenEngine>,
}

impl Default for WrittenScrape {
    fn default() -> Self {
        Self {
            interval: Period::ms(100),
            stale_after: None,
            unhealthy_after: Whole::of(3),
            cluster: "endpoint_picker_scrape".to_owned(),
            max_text_bytes: Whole::of(8 << 20),
            engines: Vec::new(),
        }
    }
}

impl WrittenScrape {
    pub(super) fn resolve(self) -> Result<Settings, ConfigError> {
        let interval = self.interval.get();
        let least = interval * 2;
        let stale_after = self.stale_after.map_or_else(|| least.max(Duration::from_secs(2)), Period::get);
        if stale_after < least {
            let (stale_after, interval, least) = (Written(stale_after), Written(interval), Written(least));
            let message =
                format!("{stale_after} is less than twice `interval` ({interval}); at least {least} is needed");
            return Err(ConfigError::at("stale_after", message));
        }
        if self.cluster.is_empty() {
            return Err(ConfigError::at("cluster", "the name of a cluster is needed"));
        }
        Ok(Settings {
            interval,
            stale_after,
            unhealthy_after: self.unhealthy_after.get(),
            cluster: self.cluster,
            max_text_bytes: self.max_text_bytes.get() as usize,
        })
    }
}
