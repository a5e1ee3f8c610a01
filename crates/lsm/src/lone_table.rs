//! Walks keys that only one table may have, in ascending order.
//!
//! The tree's own walk seeks both ends of a range in the index and in the blocks, and merges the tables' entries
//! through several calls for each entry. If no second table overlaps the range, one seek of its beginning is enough,
//! and each key is compared with the end.

use lsm_tree::{InternalValue, SeqNo, Table, UserKey, UserValue};
use std::ops::Bound;

type Entries = Box<dyn Iterator<Item = lsm_tree::Result<InternalValue>> + Send>;

/// Walks values below an LSN, within a range in the tree's form.
pub(crate) struct LoneTable {
    entries: Entries,
    end: Bound<Vec<u8>>,
    before: SeqNo,
    /// The last key of which a version has been found that the walk sees.
    decided: Option<UserKey>,
    is_over: bool,
    /// Keeps the table's file while it is walked.
    _table: Table,
}

impl LoneTable {
    /// A walk that has read nothing yet.
    pub fn new(table: Table, (start, end): (Bound<Vec<u8>>, Bound<Vec<u8>>), before: SeqNo) -> Self {
        let entries = Box::new(table.range((start.map(UserKey::from), Bound::<UserKey>::Unbounded)));
        Self { entries, end, before, decided: None, is_over: false, _table: table }
    }

    /// The next key and its value; deleted keys are skipped. `None` at the end.
    pub fn next(&mut self) -> lsm_tree::Result<Option<(UserKey, UserValue)>> {
        while !self.is_over {
            let Some(entry) = self.entries.next().transpose()? else { break };
            let key = entry.key.user_key;
            if self.is_behind(&key) {
                break;
            }
            // The newest version of a key comes first, and decides.
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
