//! How it is told that a pool is full.

use std::fmt;
use std::time::Duration;

use serde_json::Map;

use super::ConfigError;
use super::plugin::WrittenPlugin;
use crate::period::{Period, Written};
use crate::saturation::{Detector, STALENESS, Staleness};
use crate::schedule::registry::{DETECTORS, UTILIZATION};

/// How it is told that the pool is full.
pub struct Saturation {
    /// Its registered name.
    pub name: &'static str,
    /// The detector.
    pub detector: Box<dyn Detector>,
}

pub(super) fn utilization() -> WrittenPlugin {
    WrittenPlugin { kind: UTILIZATION.to_owned(), parameters: Map::new() }
}

/// Builds the detector for signals that are read once in `interval`.
pub(super) fn resolve(written: WrittenPlugin, interval: Duration) -> Result<Saturation, ConfigError> {
    let (name, mut detector) = written.build(DETECTORS, "saturation")?;
    fit(detector.staleness(), interval).map_err(|error| error.within("saturation"))?;
    Ok(Saturation { name, detector })
}

/// Checks how old a signal a plugin believes, or sets it. Between two scrapes a signal is as old as the interval, and twice
/// that if one answer is late: whoever does not believe it then takes a healthy server for one that tells nothing.
pub(super) fn fit(staleness: Option<&mut Staleness>, interval: Duration) -> Result<(), ConfigError> {
    let (Some(staleness), least) = (staleness, interval * 2) else { return Ok(()) };
    let longest = staleness.get_or_insert(Period::of(STALENESS.max(least))).get();
    if longest < least {
        let (longest, interval, least) = (Written(longest), Written(interval), Written(least));
        let message =
            format!("{longest} is less than twice `scrape.interval` ({interval}); at least {least} is needed");
        return Err(ConfigError::at("parameters.metricsStalenessThreshold", message));
    }
    Ok(())
}

impl fmt::Debug for Saturation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::super::load;

    fn with(interval: &str, more: &str) -> String {
        let pool = r#""pool":{"endpoints":[{"address":"10.0.0.1:8000"}]}"#;
        format!(r#"{{{pool},"scrape":{{"interval":"{interval}"}},{more}}}"#)
    }

    /// The same plugin as the pool's detector and as a filter, and its path.
    fn both(plugin: &str) -> [(String, &'static str); 2] {
        let filter =
            format!(r#""profile":{{"filters":[{{"type":"healthy"}},{plugin}],"picker":{{"type":"random-picker"}}}}"#);
        [(format!(r#""saturation":{plugin}"#), "saturation"), (filter, "profile.filters[1]")]
    }

    fn detector(parameters: &str) -> String {
        format!(r#"{{"type":"utilization-detector","parameters":{{{parameters}}}}}"#)
    }

    #[track_caller]
    fn refused(interval: &str, plugin: &str, message: &str) {
        for (more, path) in both(plugin) {
            assert_eq!(load(with(interval, &more).as_bytes()).unwrap_err().to_string(), format!("{path}.{message}"));
        }
    }

    #[test]
    fn signals_that_would_be_stale_between_two_scrapes_are_refused() {
        refused(
            "500ms",
            &detector(r#""metricsStalenessThreshold":"200ms""#),
            "parameters.metricsStalenessThreshold: 200ms is less than twice `scrape.interval` (500ms); at least 1s is \
             needed",
        );
        for more in both(&detector(r#""metricsStalenessThreshold":"200ms""#)) {
            load(with("100ms", &more.0).as_bytes()).unwrap();
        }
    }

    #[test]
    fn a_threshold_that_is_left_out_fits_every_interval() {
        for interval in ["20ms", "100ms", "5s", "1m"] {
            for (more, _) in both(&detector("")) {
                let mut config = load(with(interval, &more).as_bytes()).unwrap();
                let limit = config.saturation.detector.staleness().unwrap().unwrap().get();
                assert!(limit >= config.scrape.interval * 2, "{interval}: {limit:?}");
            }
        }
    }

    #[test]
    fn parameters_out_of_range_are_refused() {
        for (parameter, message) in [
            (r#""queueDepthThreshold":0"#, "queueDepthThreshold: 0 is not a whole number of at least 1"),
            (r#""kvCacheUtilThreshold":0"#, "kvCacheUtilThreshold: 0 is not above 0 and at most 1"),
            (r#""kvCacheUtilThreshold":80"#, "kvCacheUtilThreshold: 80 is not above 0 and at most 1"),
            (r#""headroom":-0.1"#, "headroom: -0.1 is not in 0..=1"),
            (
                r#""stalenessPolicy":"ignored""#,
                "stalenessPolicy: unknown value \"ignored\"; did you mean `ignore`? Known here: `saturated`, `ignore`",
            ),
            (r#""metricsStalenessThreshold":"1ms""#, "metricsStalenessThreshold: 1ms is out of range: 40ms to 10m"),
        ] {
            refused("100ms", &detector(parameter), &format!("parameters.{message}"));
        }
    }

    #[test]
    fn an_unknown_detector_is_refused_with_the_known_ones() {
        let error = load(with("100ms", r#""saturation":{"type":"utilisation-detector"}"#).as_bytes()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "saturation.type: unknown plugin \"utilisation-detector\"; did you mean `utilization-detector`? Known here: \
             `utilization-detector`, `concurrency-detector`"
        );
    }
}
