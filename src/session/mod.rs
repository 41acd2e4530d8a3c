//! Which endpoint the earlier requests of a client went to.
//!
//! A [`Session`] is told by a header or a cookie of the request, in one of two ways (`strategy`):
//!
//! * By a [`Token`] that an earlier answer carried. It names the endpoint to this proxy and nothing to the client. What is
//!   no token of an endpoint of this pool, because it was made up, comes from another fleet, or names an endpoint that is
//!   gone, is no session: the request is placed like any other, and its answer carries a token that counts. An answer has
//!   a token only if the endpoint that served is not the one that the request's token names: what the client has
//!   already need not be said again, and answers without a `set-cookie` stay cacheable.
//! * By a name that the client chose. All endpoints draw lots for the name by a hash (rendezvous hashing), and the winner
//!   has the session. So all workers and all gateways agree without a table of sessions, which each of them would have to
//!   fill, expire and lose at a restart; when an endpoint comes or goes, only sessions that it wins or had move.

mod name;
mod token;

use serde::Deserialize;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::headers::Headers;

pub use self::token::{Key, Token};

/// How sessions are told: the parameters of the plugins of session affinity.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Session {
    strategy: Strategy,
    /// The header that tells of it, in lower case.
    #[serde(deserialize_with = "name::header")]
    header_name: Option<String>,
    /// The cookie that tells of it, instead of a header.
    #[serde(deserialize_with = "name::cookie")]
    cookie: Option<String>,
    /// Of the tokens and lots; without it tokens are good for one deployment.
    #[serde(deserialize_with = "token::secret")]
    secret: Option<Key>,
}

/// What tells of a session. The names are those of llm-d's endpoint picker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Strategy {
    /// A token from an earlier answer.
    #[default]
    EncodedEndpointHeader,
    /// A name of the client's choice.
    SessionId,
}

/// Where a request's session is at home.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Home {
    /// It has none.
    #[default]
    Nowhere,
    /// It brought something that is no token of an endpoint here.
    Unknown,
    /// At the endpoint in this place of the pool.
    At(usize),
    /// At the endpoint that wins the lots for this number.
    Drawn(u64),
}

/// What an answer tells the client of its session.
#[derive(Debug, PartialEq, Eq)]
pub struct Greeting<'a> {
    /// Name of the header, in lower case.
    pub header: &'a str,
    /// Its value.
    pub value: Vec<u8>,
    /// Other lines of that name stay: servers have cookies of their own.
    pub beside_others: bool,
}

impl Session {
    /// The request header that tells of it, in lower case.
    pub fn header(&self) -> &str {
        match (&self.cookie, &self.header_name, self.strategy) {
            (Some(_), ..) => "cookie",
            (_, Some(name), _) => name,
            (.., Strategy::EncodedEndpointHeader) => "x-session-token",
            (.., Strategy::SessionId) => "x-session-id",
        }
    }

    /// One of several pools: a client keeps one token of a name, and the pools' would replace each other.
    pub fn of_pool(&mut self, pool: &str) {
        match (&mut self.cookie, self.strategy) {
            (_, Strategy::SessionId) => {}
            (Some(name), _) => *name = format!("{name}-{pool}"),
            (None, _) => self.header_name = Some(format!("{}-{pool}", self.header())),
        }
    }

    /// Whether both a header and a cookie are named, of which only one can count.
    pub fn is_ambiguous(&self) -> bool {
        self.header_name.is_some() && self.cookie.is_some()
    }

    /// The token of each of the endpoints of `pool`, in their order; none if sessions are not told by tokens. `seed` is the
    /// deployment's secret, for want of one in the configuration.
    pub fn tokens<'a>(&self, seed: u64, pool: &str, addresses: impl Iterator<Item = &'a str>) -> Vec<Token> {
        if self.strategy == Strategy::SessionId {
            return Vec::new();
        }
        let key = self.secret.unwrap_or_else(|| Key::of(&seed.to_le_bytes()));
        addresses.map(|address| key.token(pool, address)).collect()
    }

    /// Where the session of a request with these headers is at home, given the [tokens](Self::tokens) of the endpoints.
    pub fn home(&self, headers: &Headers, tokens: &[Token]) -> Home {
        let Some(value) = headers.get(self.header()) else { return Home::Nowhere };
        let home = |value: &[u8]| match self.strategy {
            Strategy::SessionId => Home::Drawn(self.number(value)),
            Strategy::EncodedEndpointHeader => {
                tokens.iter().position(|token| token.as_bytes() == value).map_or(Home::Unknown, Home::At)
            }
        };
        let Some(cookie) = &self.cookie else {
            let value = value.trim_ascii();
            return if value.is_empty() { Home::Nowhere } else { home(value) };
        };
        // A client may have more than one of a name, of which an older one may be void. Some proxies join lines by commas.
        let mut homes = value.split(|byte| matches!(byte, b';' | b',')).filter_map(|pair| {
            let value = pair.trim_ascii().strip_prefix(cookie.as_bytes())?.strip_prefix(b"=")?;
            (!value.is_empty()).then(|| home(value))
        });
        let first = homes.next().unwrap_or_default();
        if first == Home::Unknown { homes.find(|home| *home != first).unwrap_or(first) } else { first }
    }

    /// What an answer says to a client whose session is now where `token` says.
    pub fn greeting(&self, token: &Token) -> Greeting<'_> {
        match &self.cookie {
            Some(name) => Greeting {
                header: "set-cookie",
                value: [name.as_bytes(), b"=", token.as_bytes(), b"; Path=/; HttpOnly; SameSite=Lax"].concat(),
                beside_others: true,
            },
            None => Greeting { header: self.header(), value: token.as_bytes().to_vec(), beside_others: false },
        }
    }

    /// For which lots are drawn. Without a secret it is the same everywhere.
    fn number(&self, name: &[u8]) -> u64 {
        self.secret.map_or_else(|| xxh3_64_with_seed(name, 0), |key| key.number(name))
    }
}

#[cfg(test)]
mod tests;
