//! Appends records: to the log, or only to an order for a store whose engine keeps everything in memory.

use crate::disk_room::Draw;
use crate::log::{Moment, RECORD_HEADER_BYTES};
use crate::{Batch, DurabilityCallback, Log, LogStatistics, Lsn, Recovery, Result, StorageError};
use parking_lot::Mutex;
use std::sync::Arc;

/// The log of a store, or an order without a log.
pub(crate) enum Journal {
    /// Records are written and survive.
    Log(Arc<Log>),
    /// Records only have a position in an order.
    None(Mutex<Order>),
}

/// An order without a log.
pub(crate) struct Order {
    next: Lsn,
    /// Position reserved for the last record of a chain, ahead of `next`.
    reserved: Option<Lsn>,
}

/// A record that has its position.
pub(crate) struct AppendedRecord {
    pub lsn: Lsn,
    pub documents_position: u64,
}

/// Length, in positions, of the last record of a chain in an order without a log.
const LAST_BYTES: u64 = 1;

impl Order {
    pub fn from(next: Lsn) -> Mutex<Self> {
        Mutex::new(Self { next, reserved: None })
    }

    /// Assigns a position to a batch.
    fn take(&mut self, batch: &Batch<'_>, time_ms: u64, mut in_order: impl FnMut(Moment)) -> AppendedRecord {
        let length = (RECORD_HEADER_BYTES + batch.len_bytes()) as u64;
        if self.reserved.is_some_and(|at| self.next.0 + length > at.0) {
            self.place(time_ms, &mut in_order);
        }
        let lsn = self.next;
        self.next = Lsn(lsn.0 + length);
        in_order(Moment { lsn, end: self.next, time_ms });
        AppendedRecord { lsn, documents_position: lsn.0 }
    }

    fn place(&mut self, time_ms: u64, in_order: &mut impl FnMut(Moment)) {
        if let Some(lsn) = self.reserved.take() {
            self.next = Lsn(lsn.0 + LAST_BYTES);
            in_order(Moment { lsn, end: self.next, time_ms });
        }
    }
}

impl Journal {
    /// The first position in an order without a log.
    pub const FIRST: Lsn = Lsn(1);

    /// Assigns a position to the batch. `in_order` is called in order of LSNs; see [`Log::append`].
    pub fn append(
        &self,
        batch: &Batch<'_>,
        draw: Draw,
        time_ms: u64,
        in_order: impl FnMut(Moment),
    ) -> Result<AppendedRecord> {
        match self {
            Self::Log(log) => log.append(batch, draw, time_ms, in_order),
            Self::None(order) => Ok(order.lock().take(batch, time_ms, in_order)),
        }
    }

    /// See [`Log::append_term`].
    pub fn append_term(
        &self,
        batch: &Batch<'_>,
        draw: Draw,
        time_ms: u64,
        in_order: impl FnMut(Moment),
    ) -> Result<AppendedRecord> {
        match self {
            Self::Log(log) => log.append_term(batch, draw, time_ms, in_order),
            Self::None(order) => Ok(order.lock().take(batch, time_ms, in_order)),
        }
    }

    /// Position after the last record.
    pub fn end(&self) -> Lsn {
        match self {
            Self::Log(log) => log.next_lsn(),
            Self::None(order) => order.lock().next,
        }
    }

    /// See [`Log::append_links`].
    pub fn append_links(&self, parts: &[&Batch<'_>], draw: Draw) -> Result<Vec<AppendedRecord>> {
        match self {
            Self::Log(log) => log.append_links(parts, draw),
            Self::None(order) => Ok(parts.iter().map(|part| order.lock().take(part, 0, |_| ())).collect()),
        }
    }

    /// See [`Log::reserve`].
    pub fn reserve(&self, operations: u64, first: Lsn, ahead_bytes: u64, draw: Draw) -> Result<Lsn> {
        match self {
            Self::Log(log) => log.reserve(operations, first, ahead_bytes, draw),
            Self::None(order) => {
                let mut order = order.lock();
                let at = Lsn(order.next.0 + ahead_bytes);
                order.reserved = Some(at);
                Ok(at)
            }
        }
    }

    /// See [`Log::place`].
    pub fn place(&self, time_ms: u64, mut in_order: impl FnMut(Moment)) -> bool {
        match self {
            Self::Log(log) => log.place(time_ms, in_order),
            Self::None(order) => {
                order.lock().place(time_ms, &mut in_order);
                true
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

    /// See [`Log::on_durable`]. Without a log it calls back at once, as `MongoDB`'s In-Memory engine acknowledges
    /// writes.
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

    /// See [`Log::advance_time`]. Without a log times have no meaning.
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
            Self::None(_) => LogStatistics { next_lsn: self.end().0, ..LogStatistics::default() },
        }
    }

    /// Figures of the log's recovery; `None` without a log.
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
    fn without_a_log_records_have_no_gaps_and_no_writer_waits() {
        let journal = Journal::None(Order::from(Journal::FIRST));
        let mut end = Journal::FIRST;
        for length in [0, 1, 1000] {
            let mut batch = Batch::new();
            batch.insert_record(KeyspaceId(1), RecordId(1), vec![7; length]);
            let appended = journal
                .append(&batch, Draw::Free, 0, |moment| {
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
