//! The proxy's shared data as the core sees it.
//!
//! A few keys, whole values, compare-and-set. All workers of a proxy see one store. Where they cannot or shall not, each
//! worker has a [`Memory`] of its own, and nothing else changes.

use std::cell::RefCell;

use hashbrown::HashMap;

/// The value under a key, and the token a write must show to replace it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// `None`: the key was never written.
    pub value: Option<Vec<u8>>,
    /// 0 if the key was never written.
    pub cas: u32,
}

/// Shared data.
pub trait Store {
    /// Reads a key.
    fn get(&self, key: &[u8]) -> Found;

    /// Writes a key unless somebody wrote it since `cas` was read. False: somebody did, or the host took no value.
    ///
    /// Hosts differ in what 0 means for a key that exists, so read first and pass on what came back.
    fn set(&self, key: &[u8], value: &[u8], cas: u32) -> bool;
}

/// A store inside one worker.
#[derive(Debug, Default)]
pub struct Memory {
    values: RefCell<HashMap<Vec<u8>, Versioned>>,
}

type Versioned = (Vec<u8>, u32);

impl Memory {
    /// Bytes of all keys and values.
    pub fn bytes(&self) -> usize {
        self.values.borrow().iter().map(|(key, (value, _))| key.len() + value.len()).sum()
    }
}

impl Store for Memory {
    fn get(&self, key: &[u8]) -> Found {
        match self.values.borrow().get(key) {
            Some((value, cas)) => Found { value: Some(value.clone()), cas: *cas },
            None => Found::default(),
        }
    }

    fn set(&self, key: &[u8], value: &[u8], cas: u32) -> bool {
        let mut values = self.values.borrow_mut();
        match values.get_mut(key) {
            Some((held, version)) if *version == cas => {
                held.clear();
                held.extend_from_slice(value);
                *version = version.wrapping_add(1).max(1);
                true
            }
            Some(_) => false,
            None => values.insert(key.to_vec(), (value.to_vec(), 1)).is_none(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_with_an_old_token_is_refused() {
        let store = Memory::default();
        assert!(store.set(b"k", b"one", store.get(b"k").cas));
        let found = store.get(b"k");
        assert!(store.set(b"k", b"two", found.cas));
        assert!(!store.set(b"k", b"three", found.cas));
        assert_eq!(store.get(b"k").value.as_deref(), Some(&b"two"[..]));
    }
}
