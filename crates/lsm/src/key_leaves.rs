//! Decoded blocks of index keys.

use crate::blocks;
use crate::key_value::KeyValue;
use crate::keys::{Cut, Keys};
use crate::leaves::OfBlock;
use bunko_heap::prefetch_value;
use bunko_store::{KeyspaceId, RecordId};
use lsm_tree::SeqNo;

/// One version of a key in a table or memtable. As small as possible, because scattered searches read it from memory.
#[derive(Clone, Copy)]
pub(crate) struct KeyVersion {
    /// The LSN, which has 63 bits, combined with [`OLDER`].
    lsn: SeqNo,
    /// [`DELETED`] for a deletion.
    record: u64,
}

/// Number of versions in a cache line of the processor.
const VERSIONS_OF_LINE: usize = 64 / size_of::<KeyVersion>();
/// Number of versions before and after the guessed one that are prefetched while the keys are searched.
const PREFETCHED_BEFORE: usize = VERSIONS_OF_LINE;
const PREFETCHED_BEHIND: usize = 2 * VERSIONS_OF_LINE;

/// Flag: a newer version of the key stands before this one in the leaf.
const OLDER: SeqNo = 1 << 63;
/// Stands for a deletion: no record has the largest id.
const DELETED: u64 = u64::MAX;

impl KeyVersion {
    /// The newest version of a key; `None` as record is a deletion.
    pub fn new(lsn: SeqNo, record: Option<RecordId>) -> Self {
        Self { lsn, record: record.map_or(DELETED, |record| record.0) }
    }

    /// This version, marked as older than the one before it.
    pub fn older(self) -> Self {
        Self { lsn: self.lsn | OLDER, ..self }
    }

    #[inline]
    pub fn lsn(self) -> SeqNo {
        self.lsn & !OLDER
    }

    /// `None` for a deletion.
    #[inline]
    pub fn record(self) -> Option<RecordId> {
        (self.record != DELETED).then_some(RecordId(self.record))
    }

    /// Whether a newer version of the key stands before this one in the leaf.
    #[inline]
    pub fn is_older(self) -> bool {
        self.lsn & OLDER != 0
    }
}

/// Keys in ascending order, newest version first.
#[derive(Default)]
pub(crate) struct KeyLeaf {
    pub keys: Keys,
    pub versions: Vec<KeyVersion>,
    /// Whether entries of another keyspace follow the last key.
    pub is_last: bool,
}

impl KeyLeaf {
    pub fn push(&mut self, key: &[u8], version: KeyVersion) {
        self.keys.push(key);
        self.versions.push(version);
    }

    /// Index of the first entry after the cut.
    pub fn find(&self, cut: Cut<'_>) -> usize {
        // Prefetches the likely versions while the keys are searched.
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
