//! The proxy's wish that one of some endpoints be picked.
//!
//! It comes as a list or as text. Proxy-Wasm has no lists: Envoy hands one over as a map whose keys are the elements and
//! whose values are empty, so as a count, two sizes for each entry, and then each key and value with a NUL behind it. All
//! numbers are little-endian and of four bytes. Text can never look so: what would be its count is a number far greater than
//! its length.

use std::net::{IpAddr, SocketAddr};

/// The endpoints that may be picked. Default: none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subset(Vec<Entry>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entry {
    One(SocketAddr),
    /// Whatever the port.
    Host(IpAddr),
}

impl Subset {
    /// Reads a list of `ip:port`, or text with commas between them. An entry without a port stands for all ports of its
    /// address. What is no address names nobody.
    pub fn parse(value: &[u8]) -> Self {
        let entries = match list(value) {
            Some(elements) => elements.into_iter().filter_map(Entry::parse).collect(),
            None => value.split(|byte| *byte == b',').filter_map(Entry::parse).collect(),
        };
        Self(entries)
    }

    /// Whether it names this endpoint.
    pub fn names(&self, endpoint: SocketAddr) -> bool {
        self.0.iter().any(|entry| match entry {
            Entry::One(address) => *address == endpoint,
            Entry::Host(ip) => *ip == endpoint.ip(),
        })
    }
}

impl Entry {
    fn parse(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?.trim();
        let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
        match text.parse() {
            Ok(address) => Some(Self::One(address)),
            Err(_) => bare.unwrap_or(text).parse().ok().map(Self::Host),
        }
    }
}

/// The elements of a list; `None` for what is none.
fn list(value: &[u8]) -> Option<Vec<&[u8]>> {
    let (count, rest) = value.split_first_chunk()?;
    let sizes = rest.get(..usize::try_from(u32::from_le_bytes(*count)).ok()?.checked_mul(8)?)?;
    let mut rest = rest.get(sizes.len()..)?;
    let mut elements = Vec::new();
    for (at, size) in sizes.as_chunks::<4>().0.iter().enumerate() {
        let (text, behind) = rest.split_at_checked(usize::try_from(u32::from_le_bytes(*size)).ok()?)?;
        rest = behind.strip_prefix(b"\0")?;
        if at % 2 == 0 {
            elements.push(text);
        }
    }
    rest.is_empty().then_some(elements)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A list as Envoy 1.40 hands it over.
    fn marshalled(elements: &[&[u8]]) -> Vec<u8> {
        let mut bytes = (elements.len() as u32).to_le_bytes().to_vec();
        for element in elements {
            bytes.extend((element.len() as u32).to_le_bytes());
            bytes.extend(0u32.to_le_bytes());
        }
        for element in elements {
            bytes.extend(*element);
            bytes.extend(b"\0\0");
        }
        bytes
    }

    fn names(subset: &Subset, endpoint: &str) -> bool {
        subset.names(endpoint.parse().unwrap())
    }

    #[test]
    fn a_list_and_text_say_the_same() {
        let list = Subset::parse(&marshalled(&[b"10.0.0.1:8000", b"10.0.0.2:8000"]));
        let text = Subset::parse(b"10.0.0.1:8000, 10.0.0.2:8000");
        assert_eq!(list, text);
        assert!(names(&list, "10.0.0.1:8000") && names(&list, "10.0.0.2:8000") && !names(&list, "10.0.0.3:8000"));
    }

    #[test]
    fn the_port_counts_unless_there_is_none() {
        let subset = Subset::parse(b"10.0.0.1:8000,10.0.0.2,[2001:DB8::1]:8000,[2001:db8::2],2001:db8::3");
        assert!(names(&subset, "10.0.0.1:8000") && !names(&subset, "10.0.0.1:8001"));
        assert!(names(&subset, "10.0.0.2:8000") && names(&subset, "10.0.0.2:8001"));
        assert!(names(&subset, "[2001:db8::1]:8000") && !names(&subset, "[2001:db8::1]:8001"));
        assert!(names(&subset, "[2001:db8::2]:1") && names(&subset, "[2001:db8::3]:1"));
    }

    #[test]
    fn one_address_written_in_different_ways_is_one() {
        for written in ["[2001:db8:0:0:0:0:0:1]:8000", " [2001:DB8::0001]:8000 ", "[2001:db8::1]:8000\n"] {
            assert!(names(&Subset::parse(written.as_bytes()), "[2001:db8::1]:8000"), "{written}");
        }
    }

    #[test]
    fn what_is_no_address_names_nobody() {
        let five = 5f64.to_le_bytes();
        let list = marshalled(&[b"10.0.0.1:8000", &five, b"\x01", b"", &marshalled(&[b"10.0.0.2:8000"])]);
        assert_eq!(Subset::parse(&list), Subset::parse(b"10.0.0.1:8000"));
        for nobody in [&b""[..], b" ", b",", b"gpu-1:8000", b"10.0.0.1:99999", &five, &marshalled(&[]), b"\xff\xfe"] {
            assert_eq!(Subset::parse(nobody), Subset::default(), "{nobody:?}");
        }
    }

    #[test]
    fn a_list_cut_or_altered_anywhere_does_no_harm() {
        let whole = marshalled(&[b"10.0.0.1:8000", b"10.0.0.2:8000"]);
        for end in 0..whole.len() {
            assert_eq!(Subset::parse(&whole[..end]), Subset::default(), "{end}");
            for byte in [0, 1, 0x7f, 0xff] {
                let mut altered = whole.clone();
                altered[end] = byte;
                Subset::parse(&altered);
            }
        }
    }
}
