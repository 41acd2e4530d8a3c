//! Tokens that name an endpoint to who has the key, and nothing to anybody else.

use std::fmt;
use std::hash::Hasher;

use serde::{Deserialize, Deserializer, de};
use siphasher::sip128::{Hasher128, SipHasher24};

/// Shortest secret, in bytes: as long as the key that is made of it.
const MIN_SECRET: usize = 16;

/// Of base64 with the alphabet for URLs (RFC 4648, 5).
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The key of a keyed hash (SipHash-2-4 with 128 bits): who does not have it can neither tell what was hashed nor make
/// a hash that counts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Key([u8; 16]);

/// A hash of pool and address in base64 for URLs: fit for a header and a cookie as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token([u8; 22]);

impl Key {
    /// The key that follows from a secret of any length.
    pub fn of(secret: &[u8]) -> Self {
        Self(Self([0; 16]).hash(&[secret]).to_be_bytes())
    }

    /// The token of the endpoint at `address` in `pool`.
    pub(super) fn token(&self, pool: &str, address: &str) -> Token {
        // No name of a pool has a NUL, so the two cannot run together.
        let mut bits = self.hash(&[pool.as_bytes(), b"\0", address.as_bytes()]);
        Token([(); 22].map(|()| {
            let letter = ALPHABET.get((bits >> 122) as usize).copied().unwrap_or(b'A');
            bits <<= 6;
            letter
        }))
    }

    /// A number that only who has the key can foretell.
    pub(super) fn number(&self, name: &[u8]) -> u64 {
        self.hash(&[name]) as u64
    }

    fn hash(&self, parts: &[&[u8]]) -> u128 {
        let mut hasher = SipHasher24::new_with_key(&self.0);
        parts.iter().for_each(|part| hasher.write(part));
        hasher.finish128().as_u128()
    }
}

impl Token {
    /// As it is written.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Says nothing of the key: what can be shown ends in a log.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

/// The key from the secret in the configuration. The message does not repeat it.
pub(super) fn secret<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Key>, D::Error> {
    let text = String::deserialize(deserializer)?;
    if text.len() < MIN_SECRET {
        return Err(de::Error::custom(format!("{} bytes are no secret; at least {MIN_SECRET} are needed", text.len())));
    }
    Ok(Some(Key::of(text.as_bytes())))
}
