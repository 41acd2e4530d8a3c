//! `header-based-testing-filter`: only the endpoints that the request names itself. For tests.
//!
//! The header `test-epp-endpoint-selection` lists them: `ip:port` each, or an `ip` for all of its ports, with commas
//! between and spaces wherever. Addresses are compared as addresses, so `[2001:DB8::1]:8000` finds `[2001:db8::1]:8000`.
//! A header that names nobody leaves nobody. A request without the header is none of the filter's business and keeps all;
//! the endpoint picker's own full variant leaves it nobody, its light one keeps all as we do.

use std::net::{IpAddr, SocketAddr};

use crate::schedule::{Candidate, Filter, Request, Rng};

/// The header, in lower case.
const HEADER: &str = "test-epp-endpoint-selection";

/// Removes endpoints that the request does not name.
#[derive(Debug)]
pub struct HeaderBasedTesting;

impl Filter for HeaderBasedTesting {
    fn filter(&self, request: &Request<'_>, candidates: &mut Vec<Candidate<'_>>, _: &mut Rng) {
        let Some(list) = request.headers.get(HEADER) else { return };
        let list = str::from_utf8(list).unwrap_or_default();
        candidates.retain(|candidate| {
            let address = candidate.address.parse::<SocketAddr>();
            address.is_ok_and(|address| list.split(',').any(|name| names(name.trim(), address)))
        });
    }

    fn headers(&self) -> Vec<&str> {
        vec![HEADER]
    }
}

fn names(name: &str, address: SocketAddr) -> bool {
    match name.parse::<SocketAddr>() {
        Ok(named) => named == address,
        Err(_) => name.trim_matches(['[', ']']).parse::<IpAddr>().is_ok_and(|ip| ip == address.ip()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::headers::Headers;

    fn kept(header: Option<&str>) -> Vec<&'static str> {
        let headers: Headers = header.into_iter().map(|value| (HEADER.into(), value.into())).collect();
        let servers = ["10.0.0.1:8000", "10.0.0.1:8001", "10.0.0.2:8000", "[2001:db8::1]:8000"];
        let mut candidates = servers.map(Candidate::named).into();
        let request = Request { headers: &headers, ..Request::default() };
        HeaderBasedTesting.filter(&request, &mut candidates, &mut Rng::new(1));
        candidates.into_iter().map(|candidate| candidate.address).collect()
    }

    #[test]
    fn the_request_names_its_endpoints() {
        assert_eq!(kept(Some("10.0.0.1:8001")), ["10.0.0.1:8001"]);
        assert_eq!(kept(Some(" 10.0.0.2:8000 ,10.0.0.1:8000,, ")), ["10.0.0.1:8000", "10.0.0.2:8000"]);
    }

    #[test]
    fn a_port_left_out_is_any_port() {
        assert_eq!(kept(Some("10.0.0.1")), ["10.0.0.1:8000", "10.0.0.1:8001"]);
        assert_eq!(kept(Some("[2001:db8::1]")), ["[2001:db8::1]:8000"]);
        assert_eq!(kept(Some("2001:db8::1")), ["[2001:db8::1]:8000"]);
    }

    #[test]
    fn an_address_may_be_written_in_any_way() {
        assert_eq!(kept(Some("[2001:DB8:0:0::0001]:8000")), ["[2001:db8::1]:8000"]);
    }

    #[test]
    fn a_header_that_names_nobody_leaves_nobody() {
        for nobody in ["", " ", ",", "10.0.0.9:8000", "10.0.0.1:9", "10.0.0.1:8000x", "server-1:8000"] {
            assert_eq!(kept(Some(nobody)), [""; 0], "{nobody:?}");
        }
    }

    #[test]
    fn without_the_header_all_stay() {
        assert_eq!(kept(None).len(), 4);
    }
}
