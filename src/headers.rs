//! What of a request's headers decides where it goes.
//!
//! Each header costs a call to the proxy, so only those are read that something in the configuration asks for; see
//! [`crate::config::Config::request_headers`].

/// Values of request headers by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers(Vec<(Box<str>, Vec<u8>)>);

/// Of a request of which no header matters.
static NONE: Headers = Headers(Vec::new());

impl Headers {
    /// The value of the header `name`, in lower case; `None` if the request has none or nobody asked for it.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.0.iter().find(|(known, _)| **known == *name).map(|(_, value)| value.as_slice())
    }
}

impl FromIterator<(Box<str>, Vec<u8>)> for Headers {
    fn from_iter<I: IntoIterator<Item = (Box<str>, Vec<u8>)>>(headers: I) -> Self {
        Self(headers.into_iter().collect())
    }
}

impl Default for &Headers {
    fn default() -> Self {
        &NONE
    }
}
