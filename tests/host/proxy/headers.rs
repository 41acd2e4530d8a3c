//! Header maps: raw bytes, in order, names in lower case as every proxy keeps them.

/// A header map.
#[derive(Clone, Debug, Default)]
pub struct Headers(Vec<(Vec<u8>, Vec<u8>)>);

impl Headers {
    /// Adds a line; the name may be written in any case.
    pub fn add(&mut self, name: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        self.0.push((name.as_ref().to_ascii_lowercase(), value.as_ref().to_vec()));
    }

    /// The lines of one name joined with commas.
    pub fn get(&self, name: impl AsRef<[u8]>) -> Option<Vec<u8>> {
        let name = name.as_ref().to_ascii_lowercase();
        let lines: Vec<_> = self.0.iter().filter(|(n, _)| *n == name).map(|(_, value)| value.as_slice()).collect();
        (!lines.is_empty()).then(|| lines.join(&b','))
    }

    /// Removes every line of a name.
    pub fn remove(&mut self, name: &[u8]) {
        let name = name.to_ascii_lowercase();
        self.0.retain(|(n, _)| *n != name);
    }

    /// Replaces every line of a name by one.
    pub fn replace(&mut self, name: &[u8], value: &[u8]) {
        self.remove(name);
        self.add(name, value);
    }

    /// Number of lines.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Reads the ABI's form: count, then the sizes of each name and value, then names and values, each with a NUL.
    pub fn parse(bytes: &[u8]) -> Self {
        let word = |i: usize| u32::from_le_bytes(bytes[4 * i..4 * i + 4].try_into().unwrap()) as usize;
        let count = word(0);
        let mut at = 4 + 8 * count;
        let mut text = |size: usize| {
            let text = &bytes[at..at + size];
            assert_eq!(bytes[at + size], 0, "a header map without its NULs");
            at += size + 1;
            text.to_vec()
        };
        Self((0..count).map(|i| (text(word(1 + 2 * i)), text(word(2 + 2 * i)))).collect())
    }
}

impl<N: AsRef<[u8]>, V: AsRef<[u8]>> FromIterator<(N, V)> for Headers {
    fn from_iter<T: IntoIterator<Item = (N, V)>>(lines: T) -> Self {
        let mut headers = Self::default();
        lines.into_iter().for_each(|(name, value)| headers.add(name, value));
        headers
    }
}
