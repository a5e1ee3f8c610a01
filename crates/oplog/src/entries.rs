//! The entries one after the other, from either end.

use crate::entry::{Entry, Telling, tell};
use bunko_bson::{DocumentBuf, Timestamp};
use bunko_catalog::from_storage;
use bunko_errors::Result;
use bunko_store::{Direction, History, Moment, Store};

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
