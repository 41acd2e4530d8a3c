//! Addresses of endpoints.

use serde::Deserialize;
use std::net::{Ipv6Addr, SocketAddr};

/// `ip:port`. Names are refused: the proxy looks the picked address up among the resolved members of its cluster, and
/// one that it does not find is passed over without a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "String")]
#[cfg_attr(feature = "schema", schemars(inline, extend("title" = "ip:port")))]
pub(super) struct Address(pub(super) SocketAddr);

impl TryFrom<String> for Address {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match text.parse::<SocketAddr>() {
            Ok(address) if address.port() == 0 => Err(format!("{text:?} has port 0; a port from 1 to 65535 is needed")),
            Ok(address) => Ok(Self(address)),
            Err(_) => Err(format!("{text:?} {}", fault(&text))),
        }
    }
}

/// Why `text` is no `ip:port`.
fn fault(text: &str) -> &'static str {
    const V4: &str = "has no port; ip:port is needed, such as 10.0.0.1:8000";
    const V6: &str = "has no port; for IPv6 that is [ip]:port, such as [2001:db8::1]:8000";
    const NAME: &str = "is a name; ip:port is needed, such as 10.0.0.1:8000, because the proxy compares the picked \
                        address with the resolved addresses of its cluster and silently balances by itself where none \
                        is equal";
    const OTHER: &str = "is not an address; ip:port is needed, such as 10.0.0.1:8000 or [2001:db8::1]:8000";

    if text.trim() != text {
        return "has a space before or after it";
    }
    if text.contains("://") || text.contains('/') {
        return "is a URL or has a path; ip:port alone is needed, such as 10.0.0.1:8000";
    }
    let bare = text.trim_matches(['[', ']']);
    if bare.parse::<Ipv6Addr>().is_ok() {
        return V6;
    }
    let (host, port) = text.rsplit_once(':').unwrap_or((text, ""));
    let numeric = host.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let name = !numeric && host.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_'));
    let known = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>().is_ok();
    match () {
        () if name => NAME,
        () if known && port.is_empty() => V4,
        () if known && port.bytes().all(|b| b.is_ascii_digit()) => "has no such port; a port is from 1 to 65535",
        () => OTHER,
    }
}
