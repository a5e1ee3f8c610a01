//! The entries one after the other, from either end.

use crate::entry::{Entry, Happening, Telling, tell};
use bunko_bson::{DocumentBuf, Timestamp};
use bunko_catalog::from_storage;
use bunko_errors::Result;
use bunko_store::{Direction, History, Lsn, Moment, StorageError, Store};

/// Reads the oplog as it was when it was opened. Fails with `CappedPositionLost` where it was given up before it was
/// read so far, and is not to be used then.
pub struct Entries {
    history: History,
    direction: Direction,
    /// Entries of the record at hand that are yet to be read, the next one last.
    ahead: Vec<Entry>,
}

impl Entries {
    /// Opens the oplog. Of entries before `from`, if that is given, some may be shown and most are not read. `None`
    /// where the store keeps none.
    /// # Errors
    /// As reading it.
    pub fn open(store: &Store, direction: Direction, from: Option<Timestamp>) -> Result<Option<Self>> {
        let is_early = |moment: Moment| from.is_some_and(|from| moment.last_timestamp() < from);
        let history = store.history(direction, &is_early).map_err(from_storage)?;
        Ok(history.map(|history| Self { history, direction, ahead: Vec::new() }))
    }

    /// When the last entry of the record at a place in the log happened: its `ts`, and its time by the wall clock in
    /// milliseconds since 1970. `None` where the record has no entry or cannot be read back any more.
    /// # Errors
    /// As reading it.
    pub fn last_time_at(store: &Store, lsn: Lsn) -> Result<Option<(Timestamp, u64)>> {
        let Some(mut history) = store.history_at(lsn) else { return Ok(None) };
        let mut last = None;
        // More than one where a chain ends there.
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

    fn next_entry(&mut self) -> Result<Option<DocumentBuf>> {
        while self.ahead.is_empty() {
            let Some(record) = self.history.next_record().map_err(from_storage)? else { return Ok(None) };
            let ahead = &mut self.ahead;
            tell(record, &|_| true, Telling::Together, &mut |happening| {
                ahead.push(happening.into_entry());
                Ok(())
            })?;
            if self.direction == Direction::Forward {
                self.ahead.reverse();
            }
        }
        Ok(self.ahead.pop().map(|entry| entry.document))
    }
}

impl Iterator for Entries {
    type Item = Result<DocumentBuf>;

    fn next(&mut self) -> Option<Result<DocumentBuf>> {
        self.next_entry().transpose()
    }
}
