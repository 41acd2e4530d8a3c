//! What the tokens of an answer mean.
//!
//! A count is taken only at the places where servers put one, never by its name alone: the arguments of a tool call may
//! well have a member `usage`.

use super::Usage;
use super::json::Token;

/// A kind of container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// An array of whole answers.
    List,
    /// An answer or the data of an event.
    Top,
    /// `response` or `message` in an event.
    Envelope,
    Usage,
    /// The parts of the prompt's count.
    Details,
    /// What was generated, and everything within.
    Output,
    /// Everything else, and everything within.
    Outside,
}

/// What a member's name says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Key {
    Usage,
    Envelope,
    Choices,
    Delta,
    Content,
    Type,
    Error,
    Details,
    Count(Count),
    #[default]
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Count {
    Prompt,
    /// Like `Prompt`, but Anthropic does not count what was read from or written to the cache here.
    Input,
    Cached,
    CacheRead,
    CacheCreation,
    Output,
}

/// The counts as told, each as `Count` numbers it.
type Counts = [Option<u32>; 6];

/// The state of reading one answer.
#[derive(Debug, Default)]
pub(super) struct Answer {
    /// The open containers, at most six: within `Output` and `Outside` only `depth` grows.
    places: Vec<Place>,
    depth: u32,
    key: Key,
    /// A value must come next, of the member named by `key`.
    after_colon: bool,
    event: Event,
    counts: Counts,
    /// Sums over the whole answers in front in a list.
    before: Counts,
    events: u32,
    first_token_seen: bool,
}

/// What is known of the event so far.
#[derive(Clone, Copy, Debug, Default)]
struct Event {
    has_content: bool,
    /// It comes before the prompt was looked at.
    is_early: bool,
    is_error: bool,
}

impl Answer {
    pub(super) fn take(&mut self, token: Token<'_>) {
        match token {
            Token::Colon => self.after_colon = true,
            Token::Comma => _ = self.member(),
            Token::Open { is_object } => self.open(is_object),
            Token::Close => self.close(),
            Token::String(name) if !self.after_colon => self.key = Key::of(name),
            Token::String(text) => {
                let key = self.member();
                self.text(key, text);
            }
            Token::Count(count) => {
                if let (Some(Place::Usage | Place::Details), Key::Count(which)) = (self.place(), self.member()) {
                    self.count(which, count);
                }
            }
        }
    }

    /// The event is over, whether its data was whole or not.
    pub(super) fn cut(&mut self) {
        self.places.clear();
        self.depth = 0;
        self.member();
        self.event = Event::default();
    }

    pub(super) fn first_token_seen(&self) -> bool {
        self.first_token_seen
    }

    pub(super) fn usage(&self) -> Usage {
        let [prompt, input, cached, read, creation, output] = plus(self.before, self.counts);
        let outside_input = [read, creation].into_iter().flatten().fold(0, u32::saturating_add);
        Usage {
            prompt_tokens: prompt.or(input.map(|input| input.saturating_add(outside_input))),
            cached_tokens: cached.or(read),
            output_tokens: output,
            events: self.events,
        }
    }

    fn place(&self) -> Option<Place> {
        self.places.last().copied()
    }

    /// The name of the member whose value begins, if one was waited for.
    fn member(&mut self) -> Key {
        let key = std::mem::take(&mut self.key);
        if std::mem::take(&mut self.after_colon) { key } else { Key::Unknown }
    }

    fn open(&mut self, is_object: bool) {
        let key = self.member();
        let place = match (self.place(), key) {
            (None, _) if is_object => Place::Top,
            (None, _) => Place::List,
            (Some(Place::List), _) if is_object => Place::Top,
            (Some(Place::Top | Place::Envelope), Key::Usage) => Place::Usage,
            (Some(Place::Top), Key::Envelope) => Place::Envelope,
            (Some(Place::Top), Key::Choices | Key::Delta) => Place::Output,
            (Some(Place::Usage), Key::Details) => Place::Details,
            (Some(Place::Output | Place::Outside), _) => {
                self.depth = self.depth.saturating_add(1);
                return;
            }
            _ => Place::Outside,
        };
        self.event.is_error |= self.place() == Some(Place::Top) && key == Key::Error;
        self.places.push(place);
    }

    fn close(&mut self) {
        self.member();
        if self.depth > 0 {
            self.depth -= 1;
            return;
        }
        if self.places.pop() == Some(Place::Top) {
            self.end_of_answer();
        }
    }

    fn end_of_answer(&mut self) {
        let event = std::mem::take(&mut self.event);
        self.events = self.events.saturating_add(u32::from(event.has_content));
        self.first_token_seen |= !event.is_early && !event.is_error;
        if self.place() == Some(Place::List) {
            self.before = plus(self.before, std::mem::take(&mut self.counts));
        }
    }

    fn text(&mut self, key: Key, text: &[u8]) {
        match (self.place(), key) {
            (Some(Place::Output), Key::Content) | (Some(Place::Top), Key::Delta) => {
                self.event.has_content |= !text.is_empty();
            }
            (Some(Place::Top), Key::Type) => self.event.is_early = is_early(text),
            (Some(Place::Top), Key::Error) => self.event.is_error = true,
            _ => {}
        }
    }

    fn count(&mut self, which: Count, count: u32) {
        if let Some(told) = self.counts.get_mut(which as usize) {
            *told = Some(count);
        }
    }
}

impl Key {
    /// A table takes a third of the code that a match does.
    const NAMES: [(&[u8], Self); 25] = [
        (b"usage", Self::Usage),
        (b"meta_info", Self::Usage),
        (b"response", Self::Envelope),
        (b"message", Self::Envelope),
        (b"choices", Self::Choices),
        (b"delta", Self::Delta),
        (b"content", Self::Content),
        (b"reasoning", Self::Content),
        (b"reasoning_content", Self::Content),
        (b"text", Self::Content),
        (b"thinking", Self::Content),
        (b"arguments", Self::Content),
        (b"partial_json", Self::Content),
        (b"refusal", Self::Content),
        (b"type", Self::Type),
        (b"error", Self::Error),
        (b"prompt_tokens_details", Self::Details),
        (b"input_tokens_details", Self::Details),
        (b"prompt_tokens", Self::Count(Count::Prompt)),
        (b"input_tokens", Self::Count(Count::Input)),
        (b"cached_tokens", Self::Count(Count::Cached)),
        (b"cache_read_input_tokens", Self::Count(Count::CacheRead)),
        (b"cache_creation_input_tokens", Self::Count(Count::CacheCreation)),
        (b"completion_tokens", Self::Count(Count::Output)),
        (b"output_tokens", Self::Count(Count::Output)),
    ];

    fn of(name: &[u8]) -> Self {
        Self::NAMES.iter().find(|(known, _)| *known == name).map_or(Self::Unknown, |(_, key)| *key)
    }
}

fn is_early(event_type: &[u8]) -> bool {
    const EARLY: [&[u8]; 4] = [b"response.created", b"response.queued", b"response.in_progress", b"ping"];
    EARLY.contains(&event_type)
}

fn plus(one: Counts, other: Counts) -> Counts {
    let mut sums = one;
    for (sum, count) in sums.iter_mut().zip(other) {
        *sum = match (*sum, count) {
            (Some(sum), Some(count)) => Some(sum.saturating_add(count)),
            (sum, count) => sum.or(count),
        };
    }
    sums
}

#[cfg(test)]
impl Answer {
    /// Depth costs no memory.
    pub(super) fn is_small(&self) -> bool {
        self.places.capacity() <= 8
    }
}
