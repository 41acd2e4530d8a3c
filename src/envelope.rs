//! Sealing of values in shared data.
//!
//! A host may hand out a value while another worker writes it (a torn read), or the value of another key (Kong finds
//! keys by CRC32 alone), or what an older build or another plugin left there. So each value says what it is, and a
//! reader takes it whole or not at all. All numbers are little-endian:
//!
//! | offset | bytes | what |
//! |---|---|---|
//! | 0 | 4 | magic `EPK1`: this layout |
//! | 4 | 8 | XXH3-64 of everything after this field |
//! | 12 | 8 | version, chosen by the writer |
//! | 20 | 4 | length of the key |
//! | 24 | 4 | length of the payload |
//! | 28 | | the key, then the payload |

use xxhash_rust::xxh3::xxh3_64;

const MAGIC: [u8; 4] = *b"EPK1";
const HEADER: usize = 28;

/// A value that proved to be whole and to belong to its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sealed<'a> {
    /// The version given to [`seal`].
    pub version: u64,
    /// The payload given to [`seal`].
    pub payload: &'a [u8],
}

/// The bytes to store under `key`. A key or payload of 4 GiB or more yields bytes that do not open.
pub fn seal(key: &[u8], version: u64, payload: &[u8]) -> Vec<u8> {
    let length = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes();
    let mut body = Vec::with_capacity(HEADER + key.len() + payload.len());
    body.extend_from_slice(&MAGIC);
    body.extend_from_slice(&[0; 8]);
    body.extend_from_slice(&version.to_le_bytes());
    body.extend_from_slice(&length(key));
    body.extend_from_slice(&length(payload));
    body.extend_from_slice(key);
    body.extend_from_slice(payload);
    if let Some((_, rest)) = body.split_first_chunk_mut::<4>()
        && let Some((checksum, rest)) = rest.split_first_chunk_mut::<8>()
    {
        *checksum = xxh3_64(rest).to_le_bytes();
    }
    body
}

/// What was sealed under `key`, or `None` if `bytes` are foreign, torn, cut short or sealed under another key.
pub fn open<'a>(key: &[u8], bytes: &'a [u8]) -> Option<Sealed<'a>> {
    let (magic, rest) = bytes.split_first_chunk::<4>()?;
    let (checksum, checked) = rest.split_first_chunk::<8>()?;
    let (version, rest) = checked.split_first_chunk::<8>()?;
    let (key_length, rest) = rest.split_first_chunk::<4>()?;
    let (payload_length, rest) = rest.split_first_chunk::<4>()?;
    let payload = rest.strip_prefix(key)?;

    let is =
        |length: &[u8; 4], bytes: &[u8]| u32::try_from(bytes.len()).is_ok_and(|n| n == u32::from_le_bytes(*length));
    let whole = *magic == MAGIC
        && is(key_length, key)
        && is(payload_length, payload)
        && xxh3_64(checked) == u64::from_le_bytes(*checksum);
    whole.then_some(Sealed { version: u64::from_le_bytes(*version), payload })
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &[u8] = b"ep.default.snapshot";

    #[test]
    fn what_was_sealed_opens() {
        for payload in [&b""[..], b"x", &[0; 28], &[0xff; 70_000]] {
            for version in [0, 1, u64::MAX] {
                assert_eq!(open(KEY, &seal(KEY, version, payload)), Some(Sealed { version, payload }));
            }
        }
        assert_eq!(open(b"", &seal(b"", 7, b"p")), Some(Sealed { version: 7, payload: b"p" }));
    }

    #[test]
    fn the_layout_is_as_documented() {
        let bytes = seal(b"key", 0x0102, b"load");
        assert_eq!(&bytes[..4], b"EPK1");
        assert_eq!(bytes[4..12], xxh3_64(&bytes[12..]).to_le_bytes());
        assert_eq!(&bytes[12..], b"\x02\x01\0\0\0\0\0\0\x03\0\0\0\x04\0\0\0keyload");
    }

    #[test]
    fn one_flipped_bit_is_noticed() {
        let sealed = seal(KEY, 42, b"some payload of a few bytes");
        for bit in 0..sealed.len() * 8 {
            let mut bytes = sealed.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(open(KEY, &bytes), None, "bit {bit}");
        }
    }

    #[test]
    fn a_cut_or_lengthened_value_does_not_open() {
        let sealed = seal(KEY, 42, b"some payload of a few bytes");
        for cut in 0..sealed.len() {
            assert_eq!(open(KEY, &sealed[..cut]), None, "cut at {cut}");
            assert_eq!(open(KEY, &sealed[cut + 1..]), None, "begun at {}", cut + 1);
        }
        assert_eq!(open(KEY, &[&sealed[..], b"\0"].concat()), None);
    }

    #[test]
    fn a_torn_value_is_one_of_the_two_or_nothing() {
        let old = seal(KEY, 1, &[b'a'; 40]);
        for new in [seal(KEY, 2, &[b'b'; 40]), seal(KEY, 2, &[b'a'; 40]), seal(KEY, 2, &[b'b'; 57])] {
            for (a, b) in [(&old, &new), (&new, &old)] {
                for at in 0..=a.len().min(b.len()) {
                    let torn = [&a[..at], &b[at..]].concat();
                    let whole = torn == *a || torn == *b;
                    assert_eq!(open(KEY, &torn).is_some(), whole, "torn at {at}");
                }
            }
        }
    }

    #[test]
    fn the_value_of_another_key_does_not_open() {
        let sealed = seal(KEY, 42, b"payload");
        for other in [&b"ep.default.snapshos"[..], b"ep.default.snapsho", b"ep.default.snapshotp", b""] {
            assert_eq!(open(other, &sealed), None);
        }
        // The bytes after the lengths agree; only the lengths part the two.
        assert_eq!(open(b"ab", &seal(b"a", 1, b"bc")), None);
    }

    #[test]
    fn foreign_bytes_do_not_open() {
        for bytes in [&b""[..], b"EPK1", b"{\"json\": true}", &[0; 64], &[0xff; 64]] {
            assert_eq!(open(KEY, bytes), None);
            assert_eq!(open(b"", bytes), None);
        }
    }
}
