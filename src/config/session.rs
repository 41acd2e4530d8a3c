//! How sessions are told.

use super::ConfigError;
use crate::schedule::Profile;
use crate::session::Session;

/// What the plugins of `profile` say of it, which must be the same: a request has one session. None if no plugin asks.
pub(super) fn session(profile: &Profile) -> Result<Option<Session>, ConfigError> {
    let wrong = |message| Err(ConfigError::at("profile", message));
    let mut all = profile.sessions();
    let Some(first) = all.next() else { return Ok(None) };
    if first.is_ambiguous() {
        return wrong("of `headerName` and `cookie` a session can have one");
    }
    if all.any(|other| other != first) {
        return wrong("`session-affinity-filter` and `session-affinity-scorer` must have the same parameters");
    }
    Ok(Some(first.clone()))
}

#[cfg(test)]
mod tests {
    use super::super::{Config, ConfigError, load};

    fn of(filter: &str, scorer: &str) -> Result<Config, ConfigError> {
        let json = format!(
            r#"{{"pool":{{"endpoints":[{{"address":"10.0.0.1:8000"}}]}},"profile":{{
                "filters":[{{"type":"session-affinity-filter","parameters":{filter}}}],
                "scorers":[{{"type":"session-affinity-scorer","parameters":{scorer}}}],
                "picker":{{"type":"max-score-picker"}}}}}}"#
        );
        load(json.as_bytes())
    }

    #[test]
    fn filter_and_scorer_tell_sessions_alike() {
        let config = of(r#"{"cookie":"route"}"#, r#"{"cookie":"route"}"#).unwrap();
        assert_eq!(config.session.unwrap().header(), "cookie");
        assert_eq!(config.request_headers, ["cookie".into()], "read once");
        let error = of("{}", r#"{"cookie":"route"}"#).unwrap_err().to_string();
        let expected = "profile: `session-affinity-filter` and `session-affinity-scorer` must have the same parameters";
        assert_eq!(error, expected);
    }

    #[test]
    fn a_session_has_one_place_to_look_for() {
        let both = r#"{"cookie":"route","headerName":"x-route"}"#;
        assert_eq!(
            of(both, both).unwrap_err().to_string(),
            "profile: of `headerName` and `cookie` a session can have one"
        );
    }

    #[test]
    fn a_parameter_that_cannot_be_is_refused_with_its_place() {
        let error = of("{}", r#"{"secret":"short"}"#).unwrap_err().to_string();
        let expected = "profile.scorers[0].parameters.secret: 5 bytes are no secret; at least 16 are needed";
        assert_eq!(error, expected);
        let error = of(r#"{"ttl":300}"#, "{}").unwrap_err().to_string();
        let expected = "profile.filters[0].parameters.ttl: unknown field; known here: `strategy`, `headerName`, `cookie`, `secret`";
        assert_eq!(error, expected);
    }
}
