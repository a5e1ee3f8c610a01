//! Truncates the log, because another member's log goes on differently.
//!
//! ```text
//! sync ──► intent is durable ──► zero after the end, delete later segments ──► delete the intent ──► append again
//! ```
//! The intent names the new end. From the moment that it is durable, the records after that end never count again: a
//! start that finds the intent reads the log only up to there, and carries the rest out before it appends.
//!
//! The later segments are deleted and never recycled. Their bytes have positions that the log will reach again, so in a
//! recycled file they could be taken for its records.
//!
//! Readers that ship the log end: after a truncation the next bytes may not continue the bytes that they have shipped.
//!
//! **Invariant:** no record is appended before the intent is gone, or a start would truncate that record too.

use super::append::{Group, Log};
use super::record::{HEADER_BYTES, Header};
use super::segment::{Segment, first_record, segment_of};
use super::truncation_intent;
use super::walk::Window;
use crate::{Lsn, Result};
use rustc_hash::FxHashMap;
use std::sync::atomic::Ordering;

impl Log {
    /// Removes all records from `end` on, the position of a record or of a segment's first one. No engine may have
    /// applied any of them, and no other thread may append.
    ///
    /// # Errors
    /// [`StorageError::Corrupt`] if no record begins at `end`; nothing is changed then. After another error the log has
    /// failed, and the next start goes on.
    pub(crate) fn truncate_to(&self, end: Lsn) -> Result<()> {
        if end == self.next_lsn() {
            return Ok(());
        }
        let segment = self.shared_segment(segment_of(end.0))?;
        self.sync_blocking(self.next_lsn())?;
        Self::check_boundary(&segment, end)?;
        let _syncing = self.syncing.lock();
        let _writing = self.writing.lock();
        let mut tail = self.tail.lock();
        self.truncations.fetch_add(1, Ordering::SeqCst);
        let truncated = (|| {
            truncation_intent::prepare(&self.directory, end)?.publish()?;
            self.segments.rcu(|segments| {
                let mut segments = FxHashMap::clone(segments);
                segments.retain(|number, _| *number <= segment.number);
                segments
            });
            let remove = || truncation_intent::carry_out(&self.directory, Some(&segment), end);
            self.preallocator.begin_again(segment.number + 1, remove)
        })();
        truncated.map_err(|error| self.fail(error))?;
        self.terms().truncate(end);
        tail.next = end;
        tail.sealed.clear();
        tail.current = Group { segment, position: end.0, bytes: Vec::new() };
        self.written.store(end.0, Ordering::Release);
        self.synced.store(end.0, Ordering::Release);
        self.moved().ring();
        Ok(())
    }

    /// Makes the intent durable to truncate the log to `end`, where a record begins or the log ends. The next start
    /// carries it out; until then, nothing may be appended.
    ///
    /// # Errors
    /// As [`Log::truncate_to`]. The log has failed only if the next start may find the intent: it would remove records
    /// that were appended meanwhile.
    pub(crate) fn intend_truncation(&self, end: Lsn) -> Result<()> {
        let segment = self.shared_segment(segment_of(end.0))?;
        self.sync_blocking(self.next_lsn())?;
        Self::check_boundary(&segment, end)?;
        let prepared = truncation_intent::prepare(&self.directory, end)?;
        prepared.publish().map_err(|error| self.fail(error))
    }

    /// Checks that a record begins or the log ends at `end`.
    /// # Errors
    /// [`StorageError::Corrupt`] unless a record begins or the log ends at `end`.
    fn check_boundary(segment: &Segment, end: Lsn) -> Result<()> {
        let (mut position, mut window) = (Lsn(first_record(segment.number)), Window::default());
        while position < end {
            let header = Header::decode(window.at(segment, position.0, HEADER_BYTES, end.0)?, position);
            let Some(header) = header else { break };
            position = header.behind();
        }
        let is_boundary = position == end;
        is_boundary.then_some(()).ok_or_else(|| segment.corrupt(end.0, "no record begins where the log is truncated"))
    }
}
