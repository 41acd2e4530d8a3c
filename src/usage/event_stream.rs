//! The data of server-sent events, as in the HTML standard: a line `data: ...` is data, a blank line ends the event, and a
//! line ends with `\n`, `\r` or both.

use memchr::memchr2;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
const DATA: &[u8] = b"data:";

/// A position in a stream.
#[derive(Debug)]
pub(crate) struct EventStream {
    state: State,
    /// The last byte was a `\r`: a `\n` next belongs to it.
    after_return: bool,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// At the very start, so many bytes into a byte order mark.
    Mark(usize),
    /// So many bytes into what may become `data:`.
    Name(usize),
    Data,
    /// In a line of another kind.
    Other,
}

impl Default for EventStream {
    fn default() -> Self {
        Self { state: State::Mark(0), after_return: false }
    }
}

impl EventStream {
    /// Gives `each` the parts of an event's data, and `None` when the event is over, with the number of bytes that follow.
    /// The blank after the colon is still there: to JSON it means nothing.
    pub(crate) fn push(&mut self, mut bytes: &[u8], each: &mut dyn FnMut(Option<&[u8]>, usize)) {
        while let Some((byte, rest)) = bytes.split_first() {
            if std::mem::take(&mut self.after_return) && *byte == b'\n' {
                bytes = rest;
                continue;
            }
            match self.state {
                State::Mark(matched) if BYTE_ORDER_MARK.get(matched) == Some(byte) => {
                    self.state = State::Mark(matched + 1);
                    bytes = rest;
                }
                State::Mark(_) => self.state = State::Name(0),
                State::Name(0) if is_line_end(*byte) => {
                    each(None, rest.len());
                    self.after_return = *byte == b'\r';
                    bytes = rest;
                }
                State::Name(matched) if DATA.get(matched) == Some(byte) => {
                    self.state = if matched + 1 == DATA.len() { State::Data } else { State::Name(matched + 1) };
                    bytes = rest;
                }
                State::Name(_) => self.state = State::Other,
                State::Data | State::Other => {
                    let length = memchr2(b'\n', b'\r', bytes);
                    let (line, after) = bytes.split_at_checked(length.unwrap_or(bytes.len())).unwrap_or_default();
                    let is_data = matches!(self.state, State::Data);
                    if is_data {
                        each(Some(line), after.len());
                    }
                    let Some((end, rest)) = after.split_first() else { return };
                    if is_data {
                        // Lines of one event are joined by it.
                        each(Some(b"\n"), rest.len());
                    }
                    self.after_return = *end == b'\r';
                    self.state = State::Name(0);
                    bytes = rest;
                }
            }
        }
    }
}

fn is_line_end(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}
