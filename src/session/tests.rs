use serde_json::{Value, json};

use super::*;

const ADDRESSES: [&str; 3] = ["10.0.0.1:8000", "10.0.0.2:8000", "[::1]:8000"];

fn session(parameters: Value) -> Session {
    serde_json::from_value(parameters).unwrap()
}

fn tokens(session: &Session, seed: u64) -> Vec<Token> {
    session.tokens(seed, "default", ADDRESSES.into_iter())
}

fn headers(name: &str, value: impl AsRef<[u8]>) -> Headers {
    Headers::from_iter([(name.into(), value.as_ref().to_vec())])
}

fn text(token: &Token) -> &str {
    std::str::from_utf8(token.as_bytes()).unwrap()
}

#[test]
fn a_token_names_the_endpoint_it_was_given_for() {
    let session = Session::default();
    let tokens = tokens(&session, 7);
    for (at, token) in tokens.iter().enumerate() {
        assert_eq!(session.home(&headers("x-session-token", token.as_bytes()), &tokens), Home::At(at));
        let padded = format!(" {} ", text(token));
        assert_eq!(session.home(&headers("x-session-token", padded), &tokens), Home::At(at));
    }
    assert_eq!(session.home(&Headers::default(), &tokens), Home::Nowhere);
}

/// A token must not change from one version to the next, or all sessions with a secret are lost. Made with an
/// implementation of SipHash-2-4-128 of its own, checked against the reference vector.
#[test]
fn tokens_with_a_secret_stay_what_they_are() {
    let session = session(json!({ "secret": "0123456789abcdef" }));
    let all: Vec<_> = tokens(&session, 7).iter().map(|token| text(token).to_owned()).collect();
    assert_eq!(all, tokens(&session, 8).iter().map(text).collect::<Vec<_>>(), "whatever the deployment");
    assert_eq!(all, ["YlxuDT_cZmGNnjoONiFNHA", "no7jJDqCyuTS9VNg934q8g", "r_D91oSenDDHfeHJZIA14A"]);
}

#[test]
fn a_token_is_text_for_any_header_and_tells_nothing_of_the_address() {
    for token in tokens(&Session::default(), 7) {
        assert!(text(&token).bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)));
    }
    let [one, other] = ["10.0.0.1:8000", "10.0.0.1:8001"].map(|address| Key::of(b"k").token("default", address));
    let same = one.as_bytes().iter().zip(other.as_bytes()).filter(|(one, other)| one == other).count();
    assert!(same < 6, "{one:?} {other:?}");
}

#[test]
fn a_token_that_was_made_up_or_is_from_another_fleet_is_no_session() {
    let own = Session::default();
    let known = tokens(&own, 7);
    let unknown = |value: &[u8]| assert_eq!(own.home(&headers("x-session-token", value), &known), Home::Unknown);

    unknown(tokens(&own, 8)[0].as_bytes());
    unknown(own.tokens(7, "other", ADDRESSES.into_iter())[0].as_bytes());
    unknown(tokens(&session(json!({ "secret": "0123456789abcdef" })), 7)[0].as_bytes());
    unknown(own.tokens(7, "default", ["10.0.0.9:8000"].into_iter())[0].as_bytes());
    // What the reference picker would read: the address or the name in base64.
    unknown(b"10.0.0.1:8000");
    unknown(b"MTAuMC4wLjE6ODAwMA==");
    let token = known[0].as_bytes();
    unknown(&token[..21]);
    unknown(&[token, b"A"].concat());
    unknown(&[token, b",", known[1].as_bytes()].concat());
    unknown(&token.to_ascii_uppercase());
    unknown(b"\xff\xfe");
    unknown(&[b'A'; 100_000]);
}

#[test]
fn a_cookie_is_found_among_others() {
    let session = session(json!({ "cookie": "route" }));
    let known = tokens(&session, 7);
    let home = |cookies: String| session.home(&headers("cookie", cookies), &known);
    let token = text(&known[1]);
    assert_eq!(home(format!("route={token}")), Home::At(1));
    assert_eq!(home(format!("a=b; route={token}; c=d")), Home::At(1));
    assert_eq!(home(format!("a=b;route={token}")), Home::At(1));
    assert_eq!(home(format!("a=b,route={token}")), Home::At(1), "lines joined by a proxy");
    assert_eq!(home(format!("route=old; route={token}")), Home::At(1), "of several the one that counts");
    assert_eq!(home("route=old; route=older".into()), Home::Unknown);
    for none in ["", ";;=;", "a=b", "route", "route=", "xroute=1", "Route=1", "a=route=1"] {
        assert_eq!(home(none.into()), Home::Nowhere, "{none}");
    }
    assert_eq!(session.home(&headers("x-session-token", token), &known), Home::Nowhere);
}

#[test]
fn the_answer_gives_the_token_where_it_will_be_looked_for() {
    let token = Key::of(b"k").token("default", ADDRESSES[0]);
    let greeting = |parameters| {
        let session = session(parameters);
        let Greeting { header, value, beside_others } = session.greeting(&token);
        (header.to_owned(), String::from_utf8(value).unwrap().replace(text(&token), "TOKEN"), beside_others)
    };
    assert_eq!(greeting(json!({})), ("x-session-token".into(), "TOKEN".into(), false));
    assert_eq!(greeting(json!({ "headerName": "X-Mine" })), ("x-mine".into(), "TOKEN".into(), false));
    let cookie = "route=TOKEN; Path=/; HttpOnly; SameSite=Lax";
    assert_eq!(greeting(json!({ "cookie": "route" })), ("set-cookie".into(), cookie.into(), true));
}

#[test]
fn a_name_of_the_clients_choice_is_always_drawn_for_alike() {
    let by_name = |more: Value| {
        let mut parameters = json!({ "strategy": "session_id" });
        parameters.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        session(parameters)
    };
    let plain = by_name(json!({}));
    assert!(tokens(&plain, 7).is_empty(), "nothing to compute for a snapshot");
    let home = |session: &Session, name: &str, value: &str| session.home(&headers(name, value), &[]);
    let alice = home(&plain, "x-session-id", "alice");
    assert!(matches!(alice, Home::Drawn(_)));
    assert_eq!(home(&plain, "x-session-id", " alice "), alice);
    assert_ne!(home(&plain, "x-session-id", "bob"), alice);
    assert_eq!(home(&plain, "x-session-id", " "), Home::Nowhere);
    assert_eq!(home(&by_name(json!({ "headerName": "X-User" })), "x-user", "alice"), alice);
    assert_eq!(home(&by_name(json!({ "cookie": "sid" })), "cookie", "sid=alice"), alice);
    let secret = by_name(json!({ "secret": "0123456789abcdef" }));
    assert_ne!(home(&secret, "x-session-id", "alice"), alice, "who knows not the secret cannot choose an endpoint");
}

#[test]
fn parameters_that_cannot_be_are_refused() {
    let refused = |parameters: Value, message: &str| {
        let error = serde_json::from_value::<Session>(parameters).unwrap_err().to_string();
        assert!(error.starts_with(message), "{error}");
    };
    refused(json!({ "secret": "too short" }), "9 bytes are no secret; at least 16 are needed");
    refused(json!({ "cookie": "a b" }), "\"a b\" is not a name of 1 to 128 letters, digits and !#$%&'*+-.^_`|~");
    refused(json!({ "headerName": "" }), "\"\" is not a name");
    refused(json!({ "headerName": ":path" }), "\":path\" is not a name");
    refused(json!({ "headerName": "Content-Length" }), "\"content-length\" does not begin with x-");
    refused(
        json!({ "strategy": "cookie" }),
        "unknown variant `cookie`, expected `encoded_endpoint_header` or `session_id`",
    );
    refused(json!({ "ttl": "300s" }), "unknown field `ttl`");
}
