//! What an answer says of the server that gave it, or did not.

/// How a request fared at a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was answered.
    Served,
    /// A server error, no connection, a reset, a timeout.
    Failed,
    /// Neither: the server is busy (429, 503), or the client asked for something wrong or unknown (501, 505) or left.
    Neutral,
}

/// Envoy's response flags for a failure of the server: upstream request timeout, local reset, remote reset, connection
/// failure, connection termination, stream idle timeout, longest stream duration reached, protocol error.
const SERVER: u64 = 0x4 | 0x8 | 0x10 | 0x20 | 0x40 | 0x1_0000 | 0x8_0000 | 0x80_0000;
/// Stream idle timeout and longest stream duration. Of an answer that has begun they may be the fault of a client that reads
/// slowly or asked for much.
const TOO_LONG: u64 = 0x1_0000 | 0x8_0000;
/// Set beside what the last try brought.
const RETRIES_EXHAUSTED: u64 = 0x8000;

impl Outcome {
    /// Of an answer with this status. `flags` are asked for if the answer is an error: the proxy answers with the same
    /// statuses itself. A host that has none answers `None`.
    pub fn of_answer(status: &[u8], flags: impl FnOnce() -> Option<u64>) -> Self {
        match status {
            [b'2' | b'3', ..] => Self::Served,
            [b'5', ..] => match (Self::of_flags(flags()), status) {
                (Some(outcome), _) => outcome,
                (None, b"501" | b"503" | b"505") => Self::Neutral,
                (None, _) => Self::Failed,
            },
            _ => Self::Neutral,
        }
    }

    /// Of an answer that was cut off.
    pub fn of_end(flags: Option<u64>) -> Self {
        Self::of_flags(flags.map(|flags| flags & !TOO_LONG)).unwrap_or(Self::Neutral)
    }

    /// `None`: the flags say nothing.
    fn of_flags(flags: Option<u64>) -> Option<Self> {
        match flags.unwrap_or_default() & !RETRIES_EXHAUSTED {
            0 => None,
            flags if flags & SERVER != 0 => Some(Self::Failed),
            _ => Some(Self::Neutral),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Outcome::{Failed, Neutral, Served};
    use super::*;

    #[test]
    fn server_errors_are_failures_and_a_busy_server_or_a_wrong_request_is_not() {
        let cases =
            [("200", Served), ("204", Served), ("302", Served), ("500", Failed), ("502", Failed), ("504", Failed)];
        let neutral =
            ["501", "503", "505", "429", "400", "401", "404", "422", "499", ""].map(|status| (status, Neutral));
        for (status, outcome) in cases.into_iter().chain(neutral) {
            for flags in [None, Some(0), Some(RETRIES_EXHAUSTED)] {
                assert_eq!(Outcome::of_answer(status.as_bytes(), || flags), outcome, "{status} {flags:?}");
            }
        }
    }

    #[test]
    fn what_the_proxy_answers_itself_goes_by_its_flags() {
        for (status, flags, outcome) in [
            ("503", 0x20, Failed),        // UF
            ("503", 0x8020, Failed),      // UF, URX
            ("503", 0x40, Failed),        // UC
            ("504", 0x4, Failed),         // UT
            ("502", 0x80_0000, Failed),   // UPE
            ("504", 0x1_0000, Failed),    // SI
            ("503", 0x2, Neutral),        // UH: there was no server
            ("503", 0x80, Neutral),       // UO: the proxy's own limit
            ("503", 0x200_0000, Neutral), // OM
            ("500", 0x400, Neutral),      // FI
        ] {
            assert_eq!(Outcome::of_answer(status.as_bytes(), || Some(flags)), outcome, "{status} {flags:#x}");
        }
    }

    #[test]
    fn a_client_that_leaves_says_nothing_of_the_server() {
        assert_eq!(Outcome::of_end(Some(0x4000)), Neutral);
        assert_eq!(Outcome::of_end(None), Neutral);
        assert_eq!(Outcome::of_end(Some(0x4)), Failed);
        assert_eq!(Outcome::of_end(Some(0x80_0000)), Failed, "cut off");
    }

    #[test]
    fn a_client_that_reads_slowly_says_nothing_of_the_server() {
        assert_eq!(Outcome::of_end(Some(0x1_0000)), Neutral);
        assert_eq!(Outcome::of_end(Some(0x8_0000)), Neutral);
        assert_eq!(Outcome::of_end(Some(0x1_0040)), Failed, "the connection broke as well");
    }
}
