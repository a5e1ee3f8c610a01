//! Where records go: into the log, or nowhere for a store whose engine keeps everything in memory.

use crate::log::{Moment, RECORD_HEADER_BYTES};
use crate::{Batch, DurabilityCallback, Log, LogStatistics, Lsn, Recovery, Result, StorageError};
use parking_lot::Mutex;
use std::sync::Arc;

/// The log of a store that has one.
pub(crate) enum Journal {
    /// Records are written and survive.
    Log(Arc<Log>),
    /// Records have a place in an order, and that is all.
    None(Mutex<Lsn>),
}

/// A record that has its place.
pub(crate) struct Appended {
    pub lsn: Lsn,
    pub documents_position: u64,
}

impl Journal {
    /// The first place in an order without a log.
    pub const FIRST: Lsn = Lsn(1);

    /// Gives the batch its place. `in_order` is called in order of LSNs.
    pub fn append(&self, batch: &Batch<'_>, time_ms: u64, in_order: impl FnOnce(Moment)) -> Result<Appended> {
        match self {
            Self::Log(log) => log.append(batch, time_ms, in_order),
            Self::None(next) => {
                let mut next = next.lock();
                let lsn = *next;
                *next = Lsn(lsn.0 + (RECORD_HEADER_BYTES + batch.len_bytes()) as u64);
                in_order(Moment { lsn, end: *next, time_ms });
                Ok(Appended { lsn, documents_position: lsn.0 })
            }
        }
    }

    /// The same of the batches of a chain; see [`Log::append_chain`].
    pub fn append_chain(
        &self,
        parts: &[&Batch<'_>],
        time_ms: u64,
        in_order: impl FnOnce(Moment, Lsn),
    ) -> Result<Vec<Appended>> {
        match self {
            Self::Log(log) => log.append_chain(parts, time_ms, in_order),
            Self::None(next) => {
                let mut next = next.lock();
                let first = *next;
                let mut places = Vec::with_capacity(parts.len());
                for part in parts {
                    places.push(Appended { lsn: *next, documents_position: next.0 });
                    *next = Lsn(next.0 + (RECORD_HEADER_BYTES + part.len_bytes()) as u64);
                }
                in_order(Moment { lsn: first, end: *next, time_ms }, places[places.len() - 1].lsn);
                Ok(places)
            }
        }
    }

    /// See [`Log::write`].
    pub fn write(&self, lsn: Lsn) -> Result<()> {
        match self {
            Self::Log(log) => log.write(lsn),
            Self::None(_) => Ok(()),
        }
    }

    /// See [`Log::on_durable`]. Where nothing is ever durable nobody waits for it, as with `MongoDB`'s In-Memory engine.
    pub fn on_durable(&self, lsn: Lsn, callback: DurabilityCallback) {
        match self {
            Self::Log(log) => log.on_durable(lsn, callback),
            Self::None(_) => callback(Ok(())),
        }
    }

    pub fn sync_blocking(&self, end: Lsn) -> Result<()> {
        match self {
            Self::Log(log) => log.sync_blocking(end),
            Self::None(_) => Ok(()),
        }
    }

    /// See [`Log::fail`].
    pub fn fail(&self, error: StorageError) -> StorageError {
        match self {
            Self::Log(log) => log.fail(error),
            Self::None(_) => error,
        }
    }

    /// See [`Log::advance_time`]; in an order without a log times mean nothing.
    pub fn advance_time(&self, time_ms: u64) {
        if let Self::Log(log) = self {
            log.advance_time(time_ms);
        }
    }

    /// See [`Log::last_time_ms`].
    pub fn last_time_ms(&self) -> u64 {
        match self {
            Self::Log(log) => log.last_time_ms(),
            Self::None(_) => 0,
        }
    }

    pub fn statistics(&self) -> LogStatistics {
        match self {
            Self::Log(log) => log.statistics(),
            Self::None(next) => LogStatistics { next_lsn: next.lock().0, ..LogStatistics::default() },
        }
    }

    /// What it took to open the log, where there is one.
    pub fn recovery(&self) -> Option<&Recovery> {
        match self {
            Self::Log(log) => Some(log.recovery()),
            Self::None(_) => None,
        }
    }

    pub fn close(&self) -> Result<()> {
        match self {
            Self::Log(log) => log.close(),
            Self::None(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{KeyspaceId, RecordId};
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn without_a_log_records_follow_each_other_without_holes_and_nobody_waits() {
        let journal = Journal::None(Mutex::new(Journal::FIRST));
        let mut end = Journal::FIRST;
        for length in [0, 1, 1000] {
            let mut batch = Batch::new();
            batch.insert_record(KeyspaceId(1), RecordId(1), vec![7; length]);
            let appended = journal
                .append(&batch, 0, |moment| {
                    assert_eq!(moment.lsn, end);
                    assert!(moment.end.0 >= moment.lsn.0 + batch.len_bytes() as u64);
                    end = moment.end;
                })
                .expect("nothing to fail");
            assert!(appended.lsn < end);
            assert_eq!(journal.statistics().next_lsn, end.0);
            journal.write(appended.lsn).expect("nothing to fail");
        }
        let is_called = Arc::new(AtomicBool::new(false));
        let called = Arc::clone(&is_called);
        journal.on_durable(Lsn(1), Box::new(move |outcome| called.store(outcome.is_ok(), Ordering::Relaxed)));
        assert!(is_called.load(Ordering::Relaxed));
        journal.sync_blocking(end).expect("nothing to fail");
        journal.close().expect("nothing to fail");
    }
}
