//! Entries in the order in which they become durable, for readers that follow the log.

use crate::entry::{Entry, Happening, Telling, Told, tell};
use bunko_bson::Timestamp;
use bunko_catalog::from_storage;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_store::{Chained, Following, History, Lsn, Moment, Quiet, Record, StorageError, Store};
use std::collections::VecDeque;
use std::sync::Arc;

/// Refuses a change stream on a server that keeps no history.
/// # Errors
/// 40573.
pub fn check_streams(store: &Store) -> Result<()> {
    if store.keeps_history() {
        return Ok(());
    }
    let message = "The $changeStream stage is only supported on replica sets";
    Err(Failure::new(ErrorCode(40573), message))
}

/// Reads the entries from some time on, each once it is durable. Fails with `CappedPositionLost` if the log was dropped
/// before it was read; after that, the feed cannot be used any more.
pub struct Feed {
    store: Arc<Store>,
    /// The end of the last record read.
    position: Lsn,
    /// The start of the last record read, or `position` if none was read.
    record: Lsn,
    /// The part of the log that is being read, and its end. `None` when all has been read, so that no segment is kept.
    history: Option<(History, Lsn)>,
    ahead: VecDeque<Entry>,
    seen: Timestamp,
    /// Tells the feed when the log has no wanted entries; `None` if the feed follows all namespaces.
    following: Option<Following>,
    telling: Telling,
}

/// Whether a feed reads records that are known to be irrelevant to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// The feed skips such records.
    Needed,
    /// The feed reads all records, and so reaches the end of the log.
    All,
}

impl Feed {
    /// Reads all entries from now on; `None` if the store keeps no history.
    pub fn from_now(store: &Arc<Store>) -> Option<Self> {
        let seen = store.newest_time_max();
        let position = store.history_span()?.end;
        Some(Self::new(store, position, seen))
    }

    /// Reads all entries from `time` on, and perhaps some earlier ones; `None` if the store keeps no history.
    /// # Errors
    /// As reading the log.
    pub fn from_time(store: &Arc<Store>, time: Timestamp) -> Result<Option<Self>> {
        let is_early = |moment: Moment| moment.last_timestamp() < time;
        let position = store.history_place(&is_early).map_err(from_storage)?;
        Ok(position.map(|position| Self::new(store, position, Timestamp { seconds: 0, increment: 0 })))
    }

    /// Continues another feed of the store, from the place and the time that it returned.
    pub fn from_place(store: &Arc<Store>, place: Lsn, seen: Timestamp) -> Self {
        Self::new(store, place, seen)
    }

    fn new(store: &Arc<Store>, position: Lsn, seen: Timestamp) -> Self {
        Self {
            store: Arc::clone(store),
            position,
            record: position,
            history: None,
            ahead: VecDeque::new(),
            seen,
            following: None,
            telling: Telling::Apart,
        }
    }

    /// Reports transactions as the oplog shows them; the beginning of one may have been dropped.
    #[must_use]
    pub(crate) fn together(self) -> Self {
        Self { telling: Telling::Together, ..self }
    }

    /// Skips writes to other namespaces. All wanted entries must be in the scope that is followed.
    #[must_use]
    pub fn following(self, following: Option<Following>) -> Self {
        Self { following, ..self }
    }

    /// The next entry in a wanted namespace; `None` if there is none yet.
    /// # Errors
    /// As reading the log; `InternalError` for a note that this version does not know.
    pub fn next(&mut self, wants: &dyn Fn(&str) -> bool, reach: Reach) -> Result<Option<Entry>> {
        loop {
            if let Some(entry) = self.ahead.pop_front() {
                return Ok(Some(entry));
            }
            let mut ahead = std::mem::take(&mut self.ahead);
            let is_read = self.read(wants, reach, &mut |happening| {
                ahead.push_back(happening.into_entry());
                Ok(())
            });
            self.ahead = ahead;
            if !is_read? {
                return Ok(None);
            }
        }
    }

    /// Reads one record and calls `each` with its events in wanted namespaces, if any. Returns false if there is no
    /// record yet. Must not be mixed with [`Feed::next`], which may still hold entries of a record.
    /// # Errors
    /// As [`Feed::next`], and as `each`.
    pub fn read(
        &mut self,
        wants: &dyn Fn(&str) -> bool,
        reach: Reach,
        each: &mut dyn FnMut(Happening<'_>) -> Result<()>,
    ) -> Result<bool> {
        loop {
            let Some((history, end)) = &mut self.history else {
                if reach == Reach::Needed && self.is_quiet() {
                    return Ok(false);
                }
                self.history = self.store.durable_history(self.position).map_err(from_storage)?;
                if self.history.is_none() {
                    return Ok(false);
                }
                continue;
            };
            let Some(record) = history.next_record().map_err(from_storage)? else {
                self.position = self.position.max(*end);
                self.history = None;
                continue;
            };
            let Record { moment, chained, .. } = record;
            let told = tell(record, wants, self.telling, each)?;
            if told == Told::WithoutBeginning && self.telling == Telling::Apart {
                return Err(from_storage(StorageError::HistoryLost));
            }
            // All of a chain happened at the place and time of its last record.
            let Chained { last, end, .. } = chained.unwrap_or(Chained { previous: None, last: moment, end: moment });
            (self.record, self.position) = (last.lsn, last.lsn);
            if moment == end {
                self.position = last.end;
                self.seen = last.timestamp(0);
            }
            return Ok(true);
        }
    }

    /// Whether the log has no wanted entry for this feed yet. If so, the feed moves to the end of the durable log.
    fn is_quiet(&mut self) -> bool {
        let Some(following) = &self.following else { return false };
        match self.store.quiet(following, self.position) {
            Quiet::No => false,
            Quiet::Yes(None) => true,
            Quiet::Yes(Some((end, time))) => {
                (self.position, self.record) = (end, end);
                self.seen = self.seen.max(time);
                true
            }
        }
    }

    /// The place where the feed continues, once all entries were returned.
    pub fn position(&self) -> Lsn {
        self.position
    }

    /// A place from which a feed reads the last entry again, and perhaps some before it.
    pub fn place_of_last(&self) -> Lsn {
        self.record
    }

    /// The time of the last record read; at the beginning, a time that is not earlier than any record before. Later
    /// records have only later entries.
    pub fn seen(&self) -> Timestamp {
        self.seen
    }
}
