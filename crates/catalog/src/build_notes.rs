//! A batch's effects on indexes that are being built.

use crate::Index;
use crate::building::{BuildNote, IndexBuild};
use bunko_store::{Batch, RecordId, View};

/// Effects of a batch, told to the builds after the commit, before the locks are released.
#[derive(Default)]
pub(crate) struct BuildNotes<'b> {
    notes: Vec<(&'b IndexBuild, BuildNote)>,
}

impl<'b> BuildNotes<'b> {
    /// Notes that this batch puts all keys of the record into the index.
    pub fn change(&mut self, build: &'b IndexBuild, record: RecordId) {
        self.notes.push((build, BuildNote::Changed(record)));
    }

    /// Notes that the record has a unique key which leads to another record.
    pub fn add_holder(&mut self, build: &'b IndexBuild, index: &Index, key: &[u8], record: RecordId) {
        self.notes.push((build, BuildNote::HolderAdded(index.keyspace, key.to_vec(), record)));
    }

    pub fn remove_holder(&mut self, build: &'b IndexBuild, index: &Index, key: &[u8], record: RecordId) {
        if index.is_unique {
            self.notes.push((build, BuildNote::HolderRemoved(index.keyspace, key.to_vec(), record)));
        }
    }

    /// Tells the builds, once the batch is committed.
    pub fn tell(self) {
        for (build, note) in self.notes {
            build.note(note);
        }
    }
}

impl IndexBuild {
    /// Puts a key of a record unless it exists. The caller holds the lock of the record and, for a unique index, of the
    /// key.
    pub fn put_key<'b>(
        &'b self,
        view: &dyn View,
        (index, key): (&Index, &[u8]),
        record: RecordId,
        batch: &mut Batch<'_>,
        notes: &mut BuildNotes<'b>,
    ) -> bunko_store::Result<()> {
        match view.key(index.keyspace, key)? {
            Some(holder) if holder == record => {}
            Some(_) => notes.add_holder(self, index, key, record),
            None => {
                batch.put_key(index.keyspace, key, record);
                // The record may have waited for the key.
                notes.remove_holder(self, index, key, record);
            }
        }
        Ok(())
    }

    /// Removes a key if it belongs to the record. The caller holds the locks that `put_key` needs.
    pub fn delete_key<'b>(
        &'b self,
        view: &dyn View,
        (index, key): (&Index, &[u8]),
        record: RecordId,
        batch: &mut Batch<'_>,
        notes: &mut BuildNotes<'b>,
    ) -> bunko_store::Result<()> {
        match view.key(index.keyspace, key)? {
            Some(holder) if holder == record => batch.delete_key(index.keyspace, key),
            _ => notes.remove_holder(self, index, key, record),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_noted_before_the_builder_only() {
        let build = IndexBuild::default();
        build.begin(RecordId(100_000), 7);
        let note = |record: u64| {
            let mut notes = BuildNotes::default();
            notes.change(&build, RecordId(record));
            notes.tell();
            build.is_changed(RecordId(record))
        };
        assert!(note(1) && note(63) && note(64) && note(99_999));
        assert!(!build.is_changed(RecordId(2)) && !note(100_000));
        build.advance(RecordId(50_000), 5);
        assert!(!note(49_999) && note(50_001) && build.is_changed(RecordId(99_999)));
        assert!(!build.is_changed(RecordId(1)), "what lies behind is forgotten");
        assert_eq!(build.progress(), (5, 7));
    }
}
