//! Pictures, sounds and files inside a prompt: told apart by a digest, sized by a guess, never kept.

use xxhash_rust::xxh3::Xxh3;

use super::json::{Text, Value};

/// Tokens of a picture of 640 x 360, the reference endpoint picker's guess where the size is unknown. Used for sound,
/// video and files too, for want of better.
pub(super) const DEFAULT_TOKENS: u32 = 640 * 360 / PIXELS_PER_TOKEN as u32;

/// The reference endpoint picker's rule for a picture of known size.
const PIXELS_PER_TOKEN: u64 = 1024;

/// 4096 x 4096, and the most that Qwen's models take by default: engines scale larger pictures down, and a header can
/// claim anything.
const MAX_TOKENS: u64 = 16384;

/// A longer value that nobody described is taken for data.
const BULKY: usize = 4096;

/// The base64 of a picture that is searched for its size.
const HEADER_BASE64: usize = 2048;

/// The URL or data of a part: the value itself, or the member of it that carries it.
pub(super) fn payload(value: Value<'_>) -> Text<'_> {
    const KEYS: [&[u8]; 5] = [b"url", b"data", b"file_data", b"file_url", b"file_id"];
    let carried = if value.is_object() {
        let fields = value.cursor().fields::<5>(|key| KEYS.iter().position(|wanted| *wanted == key), |_, _| ());
        fields.found.into_iter().flatten().find_map(Value::text)
    } else {
        value.text()
    };
    carried.unwrap_or(Text { raw: value.raw, cut: value.cut })
}

/// Tells two of them apart, wherever they differ and however they are escaped.
pub(super) fn digest(payload: Text<'_>, seed: u64) -> u64 {
    let mut hasher = Xxh3::with_seed(seed);
    payload.pieces(|piece| hasher.update(piece));
    hasher.digest()
}

/// Estimated prompt tokens of a part.
pub(super) fn tokens(payload: Text<'_>) -> u32 {
    let header = decode_header(payload.raw);
    let size = png_size(&header).or_else(|| jpeg_size(&header));
    let Some((width, height)) = size.filter(|(width, height)| width * height > 0) else { return DEFAULT_TOKENS };
    (width * height / PIXELS_PER_TOKEN).clamp(1, MAX_TOKENS) as u32
}

/// The first bytes of base64 data, with or without the `data:` in front. Stops at what is not base64.
fn decode_header(raw: &[u8]) -> Vec<u8> {
    let data = match raw.starts_with(b"data:") {
        true => raw.iter().take(256).position(|byte| *byte == b',').and_then(|at| raw.get(at + 1..)),
        false => Some(raw),
    };
    let mut decoded = Vec::with_capacity(HEADER_BASE64 / 4 * 3);
    let (mut bits, mut held) = (0u32, 0u32);
    // The backslash is that of an escaped slash.
    for byte in data.unwrap_or_default().iter().take(HEADER_BASE64).filter(|byte| **byte != b'\\') {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => break,
        };
        bits = bits << 6 | u32::from(value);
        held += 6;
        if held >= 8 {
            held -= 8;
            decoded.push((bits >> held) as u8);
        }
    }
    decoded
}

fn png_size(bytes: &[u8]) -> Option<(u64, u64)> {
    let header = bytes.strip_prefix(b"\x89PNG\r\n\x1a\n")?;
    Some((big_endian(header.get(8..12)?), big_endian(header.get(12..16)?)))
}

/// Width and height stand in the start-of-frame segment; those before it are stepped over by their length.
fn jpeg_size(bytes: &[u8]) -> Option<(u64, u64)> {
    let mut rest = bytes.strip_prefix(b"\xff\xd8")?;
    loop {
        let segment = rest.strip_prefix(b"\xff")?;
        let kind = *segment.first()?;
        if (0xC0..=0xCF).contains(&kind) && !matches!(kind, 0xC4 | 0xC8 | 0xCC) {
            return Some((big_endian(segment.get(6..8)?), big_endian(segment.get(4..6)?)));
        }
        let length = big_endian(segment.get(1..3)?) as usize;
        rest = segment.get(1 + length.max(2)..)?;
    }
}

fn big_endian(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Whether a value that nobody described is so long that it is data rather than text.
pub(super) fn is_bulky(raw: &[u8]) -> bool {
    raw.len() > BULKY
}
