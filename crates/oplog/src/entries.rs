//! Oplog entries in sequence: from either end, or as they are written.

use crate::entry::{Entry, Happening, Telling, tell};
use crate::feed::{Feed, Reach};
use bunko_bson::{DocumentBuf, Timestamp};
use bunko_catalog::from_storage;
use bunko_errors::Result;
use bunko_store::{Direction, History, Lsn, Moment, StorageError, Store};
use std::collections::VecDeque;
use std::sync::Arc;

/// Reads the oplog: as it was when opened, from either end, or following it as it becomes durable. Both ways give the
/// same entries. Fails with `CappedPositionLost` if the log was dropped before it was read; after that, the `Entries`
/// cannot be used any more.
pub struct Entries {
    log: Records,
    /// Entries of the current record that are not returned yet, the next one first.
    ahead: VecDeque<Entry>,
}

/// The source of records.
enum Records {
    Present(History, Direction),
    Coming(Box<Feed>),
}

impl Entries {
    /// Opens the oplog as it is now. If `from` is given, most entries before it are skipped. Returns `None` if the
    /// store keeps no oplog.
    /// # Errors
    /// As reading the log.
    pub fn open(store: &Store, direction: Direction, from: Option<Timestamp>) -> Result<Option<Self>> {
        let is_early = |moment: Moment| from.is_some_and(|from| moment.last_timestamp() < from);
        let history = store.history(direction, &is_early).map_err(from_storage)?;
        Ok(history.map(|history| Self::new(Records::Present(history, direction))))
    }

    /// Opens the oplog from `from` on, to follow it. The end that a follower reaches is the end of the durable log.
    /// Returns `None` if the store keeps no oplog.
    /// # Errors
    /// As reading the log.
    pub fn follow(store: &Arc<Store>, from: Timestamp) -> Result<Option<Self>> {
        let feed = Feed::from_time(store, from)?.map(Feed::together);
        Ok(feed.map(|feed| Self::new(Records::Coming(Box::new(feed)))))
    }

    fn new(log: Records) -> Self {
        Self { log, ahead: VecDeque::new() }
    }

    /// The time of the last entry of the record at a place in the log: its `ts`, and the wall-clock time in
    /// milliseconds since 1970. `None` if the record has no entry or cannot be read any more.
    /// # Errors
    /// As reading the log.
    pub fn last_time_at(store: &Store, lsn: Lsn) -> Result<Option<(Timestamp, u64)>> {
        let Some(mut history) = store.history_at(lsn) else { return Ok(None) };
        let mut last = None;
        // There are several records if a chain ends here.
        loop {
            let record = match history.next_record() {
                Err(StorageError::HistoryLost) => return Ok(None),
                other => other.map_err(from_storage)?,
            };
            let Some(record) = record else { return Ok(last) };
            let time_ms = record.moment.time_ms;
            tell(record, &|_| true, Telling::Together, &mut |happening| {
                let at = match happening {
                    Happening::Change(change) => change.at,
                    Happening::Entry(entry) => entry.at,
                };
                last = Some((at, time_ms));
                Ok(())
            })?;
        }
    }

    /// Reads one record, which may have no entries. Returns false at the end.
    fn read(&mut self) -> Result<bool> {
        let Self { log, ahead } = self;
        let mut add = |happening: Happening<'_>| {
            ahead.push_back(happening.into_entry());
            Ok(())
        };
        match log {
            Records::Coming(feed) => feed.read(&|_| true, Reach::All, &mut add),
            Records::Present(history, direction) => {
                let Some(record) = history.next_record().map_err(from_storage)? else { return Ok(false) };
                tell(record, &|_| true, Telling::Together, &mut add)?;
                if *direction == Direction::Backward {
                    ahead.make_contiguous().reverse();
                }
                Ok(true)
            }
        }
    }

    fn next_entry(&mut self) -> Result<Option<DocumentBuf>> {
        while self.ahead.is_empty() {
            if !self.read()? {
                return Ok(None);
            }
        }
        Ok(self.ahead.pop_front().map(|entry| entry.document))
    }
}

impl Iterator for Entries {
    type Item = Result<DocumentBuf>;

    fn next(&mut self) -> Option<Result<DocumentBuf>> {
        self.next_entry().transpose()
    }
}
