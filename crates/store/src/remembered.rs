//! Small values that the store itself keeps by key: in memory, in the log, and from a checkpoint on in the manifest.
//!
//! Remembered values suit data that changes with nearly every write and is read only at starts, such as the last write
//! of a session: no engine indexes them, no view shows older values, and a change costs a tenth of what a record costs.
//! All of them are in memory, and every checkpoint writes all of them, so each user must limit the number and size of
//! its values.
//!
//! `Batch::remember` puts a value into a log record, where no engine sees it. A checkpoint copies the map at its mark,
//! and writes it into the manifest; a start reads the manifest and replays the log.

use crate::{Noted, Statement, varint};
use foldhash::fast::RandomState;
use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::Arc;

/// Number of shards. Each has its own lock, and is copied when it changes while a checkpoint holds a copy.
const SHARDS: usize = 64;

type Shard = HashMap<Box<[u8]>, Box<[u8]>, RandomState>;

/// All values by key.
#[derive(Default)]
pub(crate) struct Remembered {
    /// Hashes keys to choose their shard.
    shard_of: RandomState,
    shards: Vec<Mutex<Arc<Shard>>>,
}

/// All values at one moment.
pub(crate) struct RememberedCopy(Vec<Arc<Shard>>);

impl Remembered {
    pub fn new() -> Self {
        Self { shard_of: RandomState::default(), shards: (0..SHARDS).map(|_| Mutex::default()).collect() }
    }

    /// Restores values from [`RememberedCopy::encode`]; `None` if the encoding is malformed.
    pub fn restore(mut encoded: &[u8]) -> Option<Self> {
        let remembered = Self::new();
        while !encoded.is_empty() {
            let (key, value) = (varint::take_bytes(&mut encoded)?, varint::take_bytes(&mut encoded)?);
            remembered.remember(key, value);
        }
        Some(remembered)
    }

    /// Applies the statements of a log record. Records with different keys may be applied in any order.
    pub fn apply(&self, said: Noted<'_>) {
        for statement in said {
            match statement {
                Statement::Remember { key, value } => self.remember(key, value),
                Statement::Forget { key, start } => self.forget(key, start),
                Statement::Effect(_) | Statement::Note(_) => {}
            }
        }
    }

    fn shard(&self, key: &[u8]) -> MutexGuard<'_, Arc<Shard>> {
        self.shards[self.shard_of.hash_one(key) as usize % SHARDS].lock()
    }

    fn forget(&self, key: &[u8], start: &[u8]) {
        let mut shard = self.shard(key);
        if shard.get(key).is_some_and(|value| value.starts_with(start)) {
            Arc::make_mut(&mut shard).remove(key);
        }
    }

    fn remember(&self, key: &[u8], value: &[u8]) {
        let mut shard = self.shard(key);
        let shard = Arc::make_mut(&mut shard);
        match shard.get_mut(key) {
            Some(known) if known.len() == value.len() => known.copy_from_slice(value),
            Some(known) => *known = value.into(),
            None => drop(shard.insert(key.into(), value.into())),
        }
    }

    /// A copy of all values. With no batch in flight, it has the values of all batches so far.
    pub fn copy(&self) -> RememberedCopy {
        RememberedCopy(self.shards.iter().map(|shard| Arc::clone(&shard.lock())).collect())
    }
}

impl RememberedCopy {
    /// Keys and values, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.0.iter().flat_map(|shard| shard.iter().map(|(key, value)| (&**key, &**value)))
    }

    /// Encodes the values for the manifest.
    pub fn encode(&self) -> Vec<u8> {
        let mut encoded = Vec::new();
        for (key, value) in self.iter() {
            for bytes in [key, value] {
                varint::put_bytes(&mut encoded, bytes);
            }
        }
        encoded
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Batch;

    fn values(remembered: &Remembered) -> Vec<(Vec<u8>, Vec<u8>)> {
        let copy = remembered.copy();
        let mut values: Vec<_> = copy.iter().map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
        values.sort_unstable();
        values
    }

    #[test]
    fn a_copy_is_of_its_moment() {
        let remembered = Remembered::new();
        let mut batch = Batch::new();
        for key in 0..200_u8 {
            batch.remember(&[key], &[key; 3]);
        }
        remembered.apply(batch.remembered());
        let copy = remembered.copy();
        let before = values(&remembered);
        let mut batch = Batch::new();
        batch.forget(&[6], b"other");
        batch.forget(&[7], &[7; 2]);
        batch.remember(&[8], b"longer");
        batch.remember(&[9], b"abc");
        batch.forget(&[99, 99], b"");
        remembered.apply(batch.remembered());
        let restored = Remembered::restore(&copy.encode()).expect("well-formed");
        assert_eq!(values(&restored), before);
        let after = values(&remembered);
        assert_eq!((before.len(), after.len()), (200, 199));
        let restored = Remembered::restore(&remembered.copy().encode()).expect("well-formed");
        assert_eq!(values(&restored), after);
        let value = |key: u8| after.iter().find(|(found, _)| *found == [key]).map(|(_, value)| value.as_slice());
        assert_eq!([6, 7, 8, 9].map(value), [Some(&[6; 3][..]), None, Some(b"longer"), Some(b"abc")]);
    }

    #[test]
    fn a_cut_copy_is_refused() {
        let remembered = Remembered::new();
        remembered.remember(b"key", b"value");
        let encoded = remembered.copy().encode();
        assert!(Remembered::restore(&encoded[..encoded.len() - 1]).is_none());
        assert!(Remembered::restore(b"").is_some());
    }
}
