//! Blocks of index keys, decoded.

use crate::blocks;
use crate::key_value::KeyValue;
use crate::keys::{Cut, Keys};
use crate::leaves::OfBlock;
use bunko_heap::prefetch_value;
use bunko_store::{KeyspaceId, RecordId};
use lsm_tree::SeqNo;

/// One version of what a table or memtable knows of a key; as small as it can be, since what is searched far apart comes from
/// memory.
#[derive(Clone, Copy)]
pub(crate) struct KeyVersion {
    /// The LSN, which has 63 bits, and [`OLDER`].
    lsn: SeqNo,
    /// [`DELETED`] where the key was.
    record: u64,
}

/// Versions that a line of the processor's caches holds.
const VERSIONS_OF_LINE: usize = 64 / size_of::<KeyVersion>();
/// Versions before and behind the one that a key is guessed to lead to, which are fetched from memory while it is sought.
const PREFETCHED_BEFORE: usize = VERSIONS_OF_LINE;
const PREFETCHED_BEHIND: usize = 2 * VERSIONS_OF_LINE;

/// A newer version of the key stands before it in the leaf.
const OLDER: SeqNo = 1 << 63;
/// No record has the last of all ids.
const DELETED: u64 = u64::MAX;

impl KeyVersion {
    /// The newest version of a key that leads to a record, or was deleted.
    pub fn new(lsn: SeqNo, record: Option<RecordId>) -> Self {
        Self { lsn, record: record.map_or(DELETED, |record| record.0) }
    }

    /// The same with a newer version before it.
    pub fn older(self) -> Self {
        Self { lsn: self.lsn | OLDER, ..self }
    }

    #[inline]
    pub fn lsn(self) -> SeqNo {
        self.lsn & !OLDER
    }

    /// `None` where the key was deleted.
    #[inline]
    pub fn record(self) -> Option<RecordId> {
        (self.record != DELETED).then_some(RecordId(self.record))
    }

    /// Whether a newer version of the key stands before it in the leaf.
    #[inline]
    pub fn is_older(self) -> bool {
        self.lsn & OLDER != 0
    }
}

/// Keys in ascending order, of each the newest version first.
#[derive(Default)]
pub(crate) struct KeyLeaf {
    pub keys: Keys,
    pub versions: Vec<KeyVersion>,
    /// Whether what comes behind its last key belongs to another keyspace.
    pub is_last: bool,
}

impl KeyLeaf {
    pub fn push(&mut self, key: &[u8], version: KeyVersion) {
        self.keys.push(key);
        self.versions.push(version);
    }

    /// The first entry that is behind the cut.
    pub fn find(&self, cut: Cut<'_>) -> usize {
        // What it leads to comes from memory while the keys are searched.
        self.keys.find(cut, |guess| {
            self.keys.prefetch(guess);
            let about = guess.saturating_sub(PREFETCHED_BEFORE)..guess + PREFETCHED_BEHIND;
            about.step_by(VERSIONS_OF_LINE).filter_map(|number| self.versions.get(number)).for_each(prefetch_value);
        })
    }

    pub fn last_key(&self) -> Option<&[u8]> {
        self.keys.len().checked_sub(1).map(|last| self.keys.get(last))
    }
}

impl OfBlock for KeyLeaf {
    fn decode(block: &[u8], keyspace: KeyspaceId, lsn_base: SeqNo) -> Option<Self> {
        let mut leaf = Self::default();
        leaf.is_last = blocks::visit_keyspace(block, keyspace, |entry, key| {
            let record = match entry.value {
                None => None,
                Some(value) => Some(KeyValue::decode(value)?.record),
            };
            let version = KeyVersion::new(entry.lsn + lsn_base, record);
            let is_older = leaf.last_key() == Some(key);
            leaf.push(key, if is_older { version.older() } else { version });
            Some(())
        })?;
        leaf.keys.complete();
        leaf.versions.shrink_to_fit();
        Some(leaf)
    }

    fn memory_bytes(&self) -> u64 {
        (size_of::<Self>() + size_of_val(&*self.versions)) as u64 + self.keys.memory_bytes()
    }
}
