//! Readers that copy the log into an archive elsewhere. While they read, the log keeps what they have not read, up to a
//! limit, and all documents go through the log.

use crate::log::first_record;
use crate::{Lsn, Result, SEGMENT_BYTES, StorageError, Store};
use std::time::Duration;

/// A reader that has been silent for this time is forgotten: the log keeps nothing for it any more.
const IDLE_MAX: Duration = Duration::from_mins(2);
/// Maximum number of readers at a time.
const READERS_MAX: usize = 4;
/// With less than this free on the disk, in bytes, all readers are forgotten.
const FREE_BYTES_MIN: u64 = 4 * SEGMENT_BYTES;
/// Number of bytes that are read at a time, approximately; a longer record is read whole.
const PART_BYTES: usize = 4 << 20;

/// A part of the log that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogPart {
    /// Position after it.
    pub behind: Lsn,
    /// All durable and committed records are below this position.
    pub end: Lsn,
    /// If the log had no records after `behind` at this time: the time by the server's clock, in milliseconds since 1970.
    pub complete_ms: Option<u64>,
}

impl Store {
    /// Reads whole records from `from` on, where a record begins or the log ends, into `into`, which is cleared first. Only
    /// durable and committed records are read: no crash and no election takes them back.
    ///
    /// # Errors
    /// [`StorageError::HistoryLost`] if the log has no records from there on any more, or no record begins there;
    /// [`StorageError::ImageInUse`] if there are too many readers; errors of the files.
    pub fn read_log(&self, owner: &str, from: Lsn, into: &mut Vec<u8>) -> Result<LogPart> {
        into.clear();
        // The time comes first: a record that is written after the places are read has no earlier time.
        let clock = &self.options.clock;
        let now_ms = clock.now_ms();
        let places = self.places();
        let end = places.synced.min(places.committed);
        if from > places.end || from < Lsn(first_record(0)) {
            return Err(StorageError::HistoryLost);
        }
        // The place is noted before the segment is looked up, so that the log does not give the segment up in between.
        if !self.archives.note(owner, (from, clock.now()), READERS_MAX) {
            return Err(StorageError::ImageInUse { owner: format!("{READERS_MAX} archives of the log") });
        }
        let read = self.read_raw_log(from, 0).and_then(|mut raw| raw.read_until(end, PART_BYTES, into));
        let behind = match read {
            Ok(behind) => behind,
            Err(error) => {
                self.archives.forget(owner);
                // This log is not the one that the archive was made from.
                let is_other = matches!(error, StorageError::Corrupt { .. });
                return Err(if is_other { StorageError::HistoryLost } else { error });
            }
        };
        self.archives.note(owner, (behind, clock.now()), READERS_MAX);
        Ok(LogPart { behind, end, complete_ms: (behind >= places.end).then_some(now_ms) })
    }

    /// Whether an archive of the log is being made.
    pub(crate) fn is_archived(&self) -> bool {
        self.archives.has_readers()
    }

    /// Forgets readers that are silent, and all of them when the disk is scarce.
    pub(crate) fn end_silent_archives(&self) {
        let (clock, is_scarce) = (&self.options.clock, self.disk.is_scarce(FREE_BYTES_MIN));
        self.archives.forget_if(&|used| is_scarce || clock.since(used) >= IDLE_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::fake::fake;
    use crate::journal::Journal;
    use crate::{
        ArchivedLog, ArchivedRecord, Batch, EngineTable, KeyspaceId, RecordId, StoreOptions, Survival, segment_of,
        walk_archived,
    };
    use std::ops::ControlFlow;
    use std::os::unix::fs::FileExt;
    use std::path::{Path, PathBuf};
    use std::sync::Arc;

    fn segment(directory: &Path, number: u64) -> PathBuf {
        directory.join(format!("{number:012}.segment"))
    }

    fn store(directory: &Path) -> Arc<Store> {
        let table = EngineTable::only(fake("own", Survival::Durable).0);
        Store::open(directory, StoreOptions::at_rest(), table).expect("opens")
    }

    fn write(store: &Store, record: u64, bytes: usize) {
        let mut batch = Batch::new();
        batch.insert_record(KeyspaceId(1), RecordId(record), vec![7; bytes]);
        store.commit(&batch).expect("committed");
    }

    fn archive_of(store: &Arc<Store>, directory: &Path, from: Lsn) -> ArchivedLog {
        let mut archive = ArchivedLog::open(directory, from).expect("opens");
        loop {
            let mut bytes = Vec::new();
            let part = store.read_log("test", archive.end(), &mut bytes).expect("readable");
            if bytes.is_empty() {
                assert_eq!(part.behind, archive.end());
                break;
            }
            assert_eq!(archive.append(&bytes).expect("appended").end, part.behind);
        }
        archive.sync().expect("synced");
        archive
    }

    #[test]
    fn a_copy_of_the_log_is_walked_and_its_damage_is_named() {
        let [data, copy] = [(); 2].map(|()| tempfile::tempdir().expect("temporary directory"));
        let store = store(data.path());
        let from = store.places().start;
        for record in 0..4 {
            write(&store, record, SEGMENT_BYTES as usize * 2 / 3);
        }
        store.journal.sync_blocking(store.places().end).expect("synced");
        let archive = archive_of(&store, copy.path(), from);
        assert_eq!(archive.end(), store.places().end);
        let path_of = |number| segment(copy.path(), number);
        let mut found = Vec::new();
        let mut visit = |record: &ArchivedRecord| {
            found.push(*record);
            ControlFlow::Continue(())
        };
        walk_archived(&path_of, from..archive.end(), &mut visit).expect("whole");
        found.retain(|record| record.end.0 - record.lsn.0 > SEGMENT_BYTES / 2);
        let damaged = *found.get(2).expect("four large records");
        let path = path_of(segment_of(damaged.lsn.0));
        let file = std::fs::OpenOptions::new().write(true).open(&path).expect("opens");
        file.write_all_at(&[9], damaged.end.0 % SEGMENT_BYTES - 1000).expect("written");
        let refused = walk_archived(&path_of, from..archive.end(), &mut |_| ControlFlow::Continue(()));
        assert!(matches!(&refused, Err(StorageError::Corrupt { file, .. }) if *file == path), "{refused:?}");
        std::fs::remove_file(&path).expect("removed");
        let refused = walk_archived(&path_of, from..archive.end(), &mut |_| ControlFlow::Continue(()));
        assert!(matches!(&refused, Err(StorageError::Corrupt { file, .. }) if *file == path), "{refused:?}");
    }

    #[test]
    fn a_copy_goes_on_where_it_was_durable() {
        let [data, copy] = [(); 2].map(|()| tempfile::tempdir().expect("temporary directory"));
        let store = store(data.path());
        let from = store.places().start;
        write(&store, 1, 100);
        store.journal.sync_blocking(store.places().end).expect("synced");
        let end = archive_of(&store, copy.path(), from).end();
        write(&store, 2, 100);
        store.journal.sync_blocking(store.places().end).expect("synced");
        let longer = archive_of(&store, copy.path(), end).end();
        assert!(longer > end);
        let length = || std::fs::metadata(segment(copy.path(), 0)).expect("there").len();
        assert_eq!(length(), longer.0);
        drop(ArchivedLog::open(copy.path(), end).expect("opens"));
        assert_eq!(length(), end.0);
        assert!(matches!(ArchivedLog::open(copy.path(), longer), Err(StorageError::Corrupt { .. })));
    }

    #[test]
    fn the_log_is_kept_for_a_reader_as_long_as_it_is_heard() {
        let data = tempfile::tempdir().expect("temporary directory");
        let store = store(data.path());
        let from = store.places().start;
        let segments = || match &store.journal {
            Journal::Log(log) => log.segment_numbers(),
            Journal::None(_) => panic!("a durable engine has a log"),
        };
        for record in 0..4 {
            write(&store, record, SEGMENT_BYTES as usize * 2 / 3);
        }
        store.journal.sync_blocking(store.places().end).expect("synced");
        let behind = store.read_log("test", from, &mut Vec::new()).expect("readable").behind;
        store.checkpoint().expect("checkpoint");
        assert_eq!(segments().first(), Some(&segment_of(behind.0)));
        store.archives.forget_if(&|_| true);
        store.checkpoint().expect("checkpoint");
        assert!(segments().first() > Some(&segment_of(behind.0)), "{:?}", segments());
    }

    #[test]
    fn readers_of_a_log_that_has_not_their_place_are_told_so() {
        let data = tempfile::tempdir().expect("temporary directory");
        let store = store(data.path());
        write(&store, 1, 100);
        store.journal.sync_blocking(store.places().end).expect("synced");
        let (start, end) = (store.places().start, store.places().end);
        let read = |from| store.read_log("test", from, &mut Vec::new()).map(|part| part.behind);
        assert!(matches!(read(Lsn(end.0 + 1)), Err(StorageError::HistoryLost)));
        assert!(matches!(read(Lsn(start.0 + 1)), Err(StorageError::HistoryLost)));
        assert!(read(start).is_ok_and(|behind| behind == end));
        assert!(store.is_archived());
        store.archives.forget_if(&|_| true);
        assert!(!store.is_archived());
    }
}
