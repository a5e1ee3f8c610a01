//! Entries as they come to stand on disk, for those who follow what is written.

use crate::entry::{Entry, Happening, Telling, Told, tell};
use bunko_bson::Timestamp;
use bunko_catalog::from_storage;
use bunko_errors::Result;
use bunko_store::{Chained, Following, History, Lsn, Moment, Quiet, Record, StorageError, Store};
use std::collections::VecDeque;
use std::sync::Arc;

/// Reads the entries from some time on, each once it is durable. Fails with `CappedPositionLost` where the log was given up
/// before it was read so far, and is not to be used then.
pub struct Feed {
    store: Arc<Store>,
    /// Behind the last record that was read.
    position: Lsn,
    /// Where the last record that was read begins, or the position where none was.
    record: Lsn,
    /// What is being read, and where it ends; none while there is nothing, so that no segment is kept.
    history: Option<(History, Lsn)>,
    ahead: VecDeque<Entry>,
    seen: Timestamp,
    /// Tells when there is nothing to be read, where only that is wanted which it follows.
    following: Option<Following>,
    telling: Telling,
}

/// Whether a feed reads what it knows to be nothing for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// It passes over that.
    Needed,
    /// It reads all there is, and so comes to the log's end.
    All,
}

impl Feed {
    /// All that comes from now on; `None` where the store keeps no history.
    pub fn from_now(store: &Arc<Store>) -> Option<Self> {
        let seen = store.newest_time_max();
        let position = store.history_span()?.end;
        Some(Self::new(store, position, seen))
    }

    /// All that happened at a time and later, and perhaps a little before; `None` where the store keeps no history.
    /// # Errors
    /// As reading the log.
    pub fn from_time(store: &Arc<Store>, time: Timestamp) -> Result<Option<Self>> {
        let is_early = |moment: Moment| moment.last_timestamp() < time;
        let position = store.history_place(&is_early).map_err(from_storage)?;
        Ok(position.map(|position| Self::new(store, position, Timestamp { seconds: 0, increment: 0 })))
    }

    /// All from a place on that a feed of the same store told, with what that had seen there.
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

    /// Lets it tell transactions as the oplog shows them, of which the beginning may have been given up.
    #[must_use]
    pub(crate) fn together(self) -> Self {
        Self { telling: Telling::Together, ..self }
    }

    /// Lets it pass over what others wrote; all that is wanted of it has to be in the scope that is followed.
    #[must_use]
    pub fn following(self, following: Option<Following>) -> Self {
        Self { following, ..self }
    }

    /// The next entry in a wanted namespace, `None` where there is none yet.
    /// # Errors
    /// As reading the log; `InternalError` for a record of a program that is not this one.
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

    /// Reads one record and tells what it did in wanted namespaces, which may be nothing; false where there is no record yet.
    /// Not to be mixed with [`Feed::next`], which may have entries of a record left.
    /// # Errors
    /// As [`Feed::next`]; those of `each`.
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
            // All of a chain happened where its last record stands, and when that did.
            let Chained { last, end, .. } = chained.unwrap_or(Chained { previous: None, last: moment, end: moment });
            (self.record, self.position) = (last.lsn, last.lsn);
            if moment == end {
                self.position = last.end;
                self.seen = last.timestamp(0);
            }
            return Ok(true);
        }
    }

    /// Whether there is nothing for it yet; then it goes on where the log is on disk.
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

    /// Where it goes on, once there is no entry left.
    pub fn position(&self) -> Lsn {
        self.position
    }

    /// A place from which on the last entry comes again, and perhaps some before it.
    pub fn place_of_last(&self) -> Lsn {
        self.record
    }

    /// When the record happened that was looked at last, or at the beginning a time that none before it is later than. No entry
    /// of a record that is yet to come is earlier or of that time.
    pub fn seen(&self) -> Timestamp {
        self.seen
    }
}
