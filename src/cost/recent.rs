//! A table of bounded size that forgets what was not written for longest.

use hashbrown::HashMap;

#[derive(Debug)]
pub(super) struct Recent<V> {
    entries: HashMap<u64, Entry<V>>,
    limit: usize,
    writes: u64,
}

#[derive(Debug)]
struct Entry<V> {
    value: V,
    written: u64,
}

impl<V> Recent<V> {
    pub(super) fn new(limit: usize) -> Self {
        Self { entries: HashMap::new(), limit, writes: 0 }
    }

    pub(super) fn get(&self, key: u64) -> Option<&V> {
        self.entries.get(&key).map(|entry| &entry.value)
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The value to write to, `fresh` if there was none. Making room looks at all entries, which are few.
    pub(super) fn write(&mut self, key: u64, fresh: impl FnOnce() -> V) -> &mut V {
        self.writes += 1;
        if self.entries.len() >= self.limit && !self.entries.contains_key(&key) {
            let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.written).map(|(key, _)| *key);
            oldest.and_then(|key| self.entries.remove(&key));
        }
        let entry = self.entries.entry(key).or_insert_with(|| Entry { value: fresh(), written: 0 });
        entry.written = self.writes;
        &mut entry.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_written_for_longest_goes_first() {
        let mut table = Recent::new(2);
        *table.write(1, || 10) += 1;
        *table.write(2, || 20) += 1;
        *table.write(1, || 0) += 1;
        table.write(3, || 30);
        assert_eq!((table.get(1), table.get(2), table.get(3)), (Some(&12), None, Some(&30)));
        assert_eq!(table.len(), 2);
    }
}
