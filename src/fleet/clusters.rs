//! What Envoy's admin interface says of a cluster: the answer to `/clusters?format=json`.
//!
//! Only what is used is read; the rest, which is most of it, is skipped without being kept.

use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

use super::MOST_ENDPOINTS;
use crate::prompt::json::{Cursor, Fields, Text, Value};

/// What the proxy says of an endpoint's membership in the pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Membership {
    /// Nothing.
    #[default]
    Unlisted,
    /// It is a member.
    Listed,
    /// It is a member that is to get no new request: marked as draining, or taken out while its health check still
    /// succeeds.
    Draining,
    /// It is a member that the proxy itself holds for unhealthy: so marked, or failed by a health check or by outlier
    /// detection.
    Failing,
}

/// A member of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Where it listens.
    pub address: SocketAddr,
    /// How it stands.
    pub membership: Membership,
}

/// The members of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// In the order of their addresses, IPv4 first; none twice and at most 1024.
    pub members: Vec<Member>,
    /// Members that were too many.
    pub left_out: usize,
}

/// Why an answer is no list of members. The last one that was stays in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The proxy would not even send the question.
    NotSent,
    /// No answer, or another status than 200.
    Status(Option<u16>),
    /// The answer is longer than `scrape.max_text_bytes`.
    TooLong,
    /// It is no JSON, cut, or of another form.
    NotClusters,
    /// The proxy has no such cluster, or not yet.
    NoSuchCluster,
}

impl Listing {
    /// Adds a member in its place. One that is there already, in another locality or priority, stands as badly as the worse
    /// of the two.
    pub(super) fn add(&mut self, member: Member) {
        match self.members.binary_search_by(|known| known.address.cmp(&member.address)) {
            Ok(at) => {
                if let Some(known) = self.members.get_mut(at) {
                    known.membership = known.membership.max(member.membership);
                }
            }
            Err(at) => {
                self.members.insert(at, member);
                self.left_out += usize::from(self.members.len() > MOST_ENDPOINTS);
                self.members.truncate(MOST_ENDPOINTS);
            }
        }
    }
}

/// Reads the members of `cluster`. Those without an IP address and a port are no model servers that could be named, and are
/// passed over.
pub(super) fn read(body: &[u8], cluster: &str) -> Result<Listing, Fault> {
    let mut cursor = Cursor::new(body);
    let whole = cursor.value().filter(|value| value.is_object() && !value.cut && cursor.peek().is_none());
    let clusters = whole.and_then(|whole| field(whole, b"cluster_statuses")).ok_or(Fault::NotClusters)?;
    let mut listing = Listing::default();
    for status in elements(clusters)? {
        if text(status, b"name").ok_or(Fault::NotClusters)?.to_vec() == cluster.as_bytes() {
            // A cluster without members has no such field.
            for host in field(status, b"host_statuses").map_or_else(|| Ok(Vec::new()), elements)? {
                member(host)?.into_iter().for_each(|member| listing.add(member));
            }
            return Ok(listing);
        }
    }
    Err(Fault::NoSuchCluster)
}

fn member(host: Value<'_>) -> Result<Option<Member>, Fault> {
    let address = field(host, b"address").filter(|address| address.is_object()).ok_or(Fault::NotClusters)?;
    // A pipe or an address inside the proxy has none.
    let Some(socket) = field(address, b"socket_address") else { return Ok(None) };
    let ip = text(socket, b"address").ok_or(Fault::NotClusters)?;
    let port = field(socket, b"port_value").map_or(Some(0), |port| u16::try_from(port.count()?).ok());
    let port = port.ok_or(Fault::NotClusters)?;
    let membership = field(host, b"health_status").map_or(Membership::Listed, membership);
    let ip = std::str::from_utf8(ip.raw).ok().and_then(|ip| ip.parse::<IpAddr>().ok());
    Ok(ip.filter(|_| port != 0).map(|ip| Member { address: SocketAddr::new(ip, port), membership }))
}

/// Flags that are not set are left out. Degraded members take part: what makes them so is in their metrics, too.
fn membership(health: Value<'_>) -> Membership {
    let is = |flag: &[u8]| field(health, flag).is_some_and(|value| value.raw == b"true");
    match text(health, b"eds_health_status").map(|status| status.raw) {
        Some(b"UNHEALTHY" | b"TIMEOUT") => Membership::Failing,
        _ if is(b"failed_active_health_check") || is(b"failed_outlier_check") => Membership::Failing,
        Some(b"DRAINING") => Membership::Draining,
        _ if is(b"pending_dynamic_removal") => Membership::Draining,
        _ => Membership::Listed,
    }
}

/// A field of an object; `None` of anything else.
fn field<'a>(object: Value<'a>, name: &[u8]) -> Option<Value<'a>> {
    let object = Some(object).filter(|object| object.is_object())?;
    let Fields { found: [found], .. } = object.cursor().fields(|key| (key == name).then_some(0), |_, _| {});
    found
}

/// The text in a field of an object.
fn text<'a>(object: Value<'a>, name: &[u8]) -> Option<Text<'a>> {
    field(object, name)?.text()
}

/// The elements of a list.
fn elements(list: Value<'_>) -> Result<Vec<Value<'_>>, Fault> {
    if !list.is_array() {
        return Err(Fault::NotClusters);
    }
    let (mut cursor, mut elements) = (list.cursor(), Vec::new());
    cursor.enter();
    while cursor.element().is_some() {
        elements.extend(cursor.value());
    }
    Ok(elements)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// The form of Envoy 1.40, with what is not read.
    fn host(address: &Value, health: &Value) -> Value {
        json!({
            "address": address,
            "stats": [{ "name": "cx_total", "value": "17" }, { "type": "GAUGE", "name": "rq_active" }],
            "health_status": health, "weight": 1, "hostname": "localhost",
            "locality": { "region": "r", "zone": "z" },
        })
    }

    fn socket(address: &str, port: u32) -> Value {
        json!({ "socket_address": { "address": address, "port_value": port } })
    }

    fn answer(hosts: &[Value]) -> String {
        let own = json!({ "name": "model_servers", "host_statuses": hosts, "observability_name": "model_servers" });
        let other = json!({ "name": "other", "host_statuses": [host(&socket("10.9.9.9", 1), &json!({}))] });
        json!({ "cluster_statuses": [{ "name": "model_servers_2" }, other, own] }).to_string()
    }

    fn members(hosts: &[Value]) -> Vec<(String, Membership)> {
        let listing = read(answer(hosts).as_bytes(), "model_servers").unwrap();
        listing.members.iter().map(|member| (member.address.to_string(), member.membership)).collect()
    }

    #[test]
    fn addresses_are_canonical_and_in_order() {
        let healthy = json!({ "eds_health_status": "HEALTHY" });
        let hosts = [
            host(&socket("2001:DB8:0:0::1", 8001), &healthy),
            host(&socket("10.0.0.10", 8000), &healthy),
            host(&socket("::ffff:10.0.0.1", 8000), &healthy),
            host(&socket("10.0.0.9", 8001), &healthy),
            host(&socket("10.0.0.9", 8000), &healthy),
            host(&socket("10.0.0.9", 8000), &healthy),
        ];
        let members: Vec<_> = members(&hosts).into_iter().map(|(address, _)| address).collect();
        assert_eq!(
            members,
            ["10.0.0.9:8000", "10.0.0.9:8001", "10.0.0.10:8000", "[::ffff:10.0.0.1]:8000", "[2001:db8::1]:8001"],
            "each once; an IPv4 address written as IPv6 stays one, as it does in Envoy"
        );
    }

    #[test]
    fn what_has_no_ip_and_port_is_passed_over() {
        let healthy = json!({});
        let hosts = [
            host(&json!({ "pipe": { "path": "/tmp/x.sock" } }), &healthy),
            host(&json!({ "envoy_internal_address": { "server_listener_name": "x" } }), &healthy),
            host(&socket("localhost", 8000), &healthy),
            host(&socket("10.0.0.1", 0), &healthy),
            json!({ "address": { "socket_address": { "address": "10.0.0.2", "port_value": 8000 } } }),
        ];
        assert_eq!(members(&hosts), [("10.0.0.2:8000".to_owned(), Membership::Listed)]);
    }

    #[test]
    fn the_proxys_own_opinion_of_a_member_counts() {
        for (health, expected) in [
            (json!({ "eds_health_status": "HEALTHY" }), Membership::Listed),
            (json!({ "eds_health_status": "UNKNOWN" }), Membership::Listed),
            (json!({ "eds_health_status": "DEGRADED", "failed_active_degraded_check": true }), Membership::Listed),
            (json!({ "eds_health_status": "HEALTHY", "pending_active_hc": true }), Membership::Listed),
            (json!({ "eds_health_status": "DRAINING" }), Membership::Draining),
            (json!({ "eds_health_status": "HEALTHY", "pending_dynamic_removal": true }), Membership::Draining),
            (json!({ "eds_health_status": "UNHEALTHY" }), Membership::Failing),
            (json!({ "eds_health_status": "TIMEOUT" }), Membership::Failing),
            (json!({ "eds_health_status": "HEALTHY", "failed_active_health_check": true }), Membership::Failing),
            (json!({ "eds_health_status": "HEALTHY", "failed_outlier_check": true }), Membership::Failing),
            (json!({ "eds_health_status": "DRAINING", "failed_active_health_check": true }), Membership::Failing),
        ] {
            assert_eq!(members(&[host(&socket("10.0.0.1", 80), &health)])[0].1, expected, "{health}");
        }
        let twice = ["HEALTHY", "DRAINING", "HEALTHY"]
            .map(|status| host(&socket("10.0.0.1", 80), &json!({ "eds_health_status": status })));
        assert_eq!(members(&twice), [("10.0.0.1:80".to_owned(), Membership::Draining)]);
    }

    #[test]
    fn of_too_many_members_the_first_are_taken() {
        let host = |n: u32| host(&socket(&format!("10.0.{}.{}", n / 250, n % 250), 8000), &json!({}));
        let hosts: Vec<_> = (0..1500).rev().map(host).collect();
        let listing = read(answer(&hosts).as_bytes(), "model_servers").unwrap();
        assert_eq!((listing.members.len(), listing.left_out), (1024, 476));
        assert_eq!(listing.members[1023].address.to_string(), "10.0.4.23:8000");
    }

    #[test]
    fn a_cluster_without_members_is_there_and_one_that_is_missing_is_not() {
        assert_eq!(read(answer(&[]).as_bytes(), "model_servers_2"), Ok(Listing::default()));
        assert_eq!(read(answer(&[]).as_bytes(), "model_server"), Err(Fault::NoSuchCluster));
        assert_eq!(read(br#"{"cluster_statuses":[]}"#, "model_servers"), Err(Fault::NoSuchCluster));
    }

    #[test]
    fn an_answer_cut_anywhere_is_none() {
        let whole = answer(&[host(&socket("10.0.0.1", 80), &json!({ "eds_health_status": "HEALTHY" }))]);
        for end in 0..whole.len() {
            assert_eq!(read(&whole.as_bytes()[..end], "model_servers"), Err(Fault::NotClusters), "cut at {end}");
        }
    }

    #[test]
    fn another_form_is_no_answer() {
        let wrong = |host: Value| answer(&[host]);
        for text in [
            "[]".to_owned(),
            "null".into(),
            "{}".into(),
            "<html>".into(),
            "model_servers::10.0.0.1:80::cx_active::0\n".into(),
            r#"{"cluster_statuses":{}}"#.into(),
            r#"{"cluster_statuses":[{"host_statuses":[]}]}"#.into(),
            wrong(json!({})),
            wrong(json!("10.0.0.1:80")),
            wrong(host(&socket("10.0.0.1", 65_536), &json!({}))),
            wrong(host(&json!({ "socket_address": { "address": 1, "port_value": 2 } }), &json!({}))),
            format!("{}}}", answer(&[])),
            "[".repeat(100_000),
        ] {
            assert_eq!(read(text.as_bytes(), "model_servers"), Err(Fault::NotClusters), "{text:.80}");
        }
    }
}
