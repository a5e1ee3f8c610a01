//! Blocks of index keys, decoded.

use crate::blocks;
use crate::key_value::KeyValue;
use crate::keys::Keys;
use crate::leaves::OfBlock;
use bunko_store::{KeyspaceId, RecordId};
use lsm_tree::SeqNo;

/// One version of what a table or memtable knows of a key.
#[derive(Clone, Copy)]
pub(crate) struct KeyVersion {
    pub lsn: SeqNo,
    /// `None` where the key was deleted.
    pub record: Option<RecordId>,
    /// Whether a newer version of the key stands before it in the leaf.
    pub is_older: bool,
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
            let is_older = leaf.last_key() == Some(key);
            leaf.push(key, KeyVersion { lsn: entry.lsn + lsn_base, record, is_older });
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
