//! Walking keys that only one table may know, in ascending order.
//!
//! The tree's own walk seeks both ends of a range in the index and in the blocks, and merges what it finds, behind several calls
//! for each entry. Where no second table reaches over the range, one seek of its beginning is enough, and each key is compared
//! with its end.

use lsm_tree::{InternalValue, SeqNo, Table, UserKey, UserValue};
use std::ops::Bound;

type Entries = Box<dyn Iterator<Item = lsm_tree::Result<InternalValue>> + Send>;

/// Values as of all below an LSN, within a range in the tree's form.
pub(crate) struct LoneTable {
    entries: Entries,
    end: Bound<Vec<u8>>,
    before: SeqNo,
    /// The last key of which a version was met that the walk shows.
    decided: Option<UserKey>,
    is_over: bool,
    /// Its file is kept for as long as it is held.
    _table: Table,
}

impl LoneTable {
    /// Reads nothing yet.
    pub fn new(table: Table, (start, end): (Bound<Vec<u8>>, Bound<Vec<u8>>), before: SeqNo) -> Self {
        let entries = Box::new(table.range((start.map(UserKey::from), Bound::<UserKey>::Unbounded)));
        Self { entries, end, before, decided: None, is_over: false, _table: table }
    }

    /// The next key and its value; deleted ones are passed.
    pub fn next(&mut self) -> lsm_tree::Result<Option<(UserKey, UserValue)>> {
        while !self.is_over {
            let Some(entry) = self.entries.next().transpose()? else { break };
            let key = entry.key.user_key;
            if self.is_behind(&key) {
                break;
            }
            // The newest version of a key comes first.
            if entry.key.seqno >= self.before || self.decided.as_ref() == Some(&key) {
                continue;
            }
            self.decided = Some(key.clone());
            if !entry.key.value_type.is_tombstone() {
                return Ok(Some((key, entry.value)));
            }
        }
        self.is_over = true;
        Ok(None)
    }

    fn is_behind(&self, key: &[u8]) -> bool {
        match &self.end {
            Bound::Included(end) => key > end.as_slice(),
            Bound::Excluded(end) => key >= end.as_slice(),
            Bound::Unbounded => false,
        }
    }
}
