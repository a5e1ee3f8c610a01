//! The part of the log that can be read back, and how it is read.
//!
//! A record says how documents changed, but neither the name of their collection nor the `_id` of a deleted one:
//! [`Batch::note`](crate::Batch::note) adds these. So the history begins where the notes begin, or at the oldest
//! segment that was kept, whichever comes later.

use crate::journal::Journal;
use crate::log::{History, Moment, first_record, segment_of};
use crate::manifest::Manifest;
use crate::{Bell, Direction, Following, Lsn, NamesOf, Quiet, Result, StorageError, Store};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The limits of the history, and where it begins.
pub(crate) struct Kept {
    /// A whole segment is kept while less than about this many bytes of the log come after it.
    bytes_max: AtomicU64,
    /// Segments with records younger than this many milliseconds are kept, however long the log is. Not saved across
    /// restarts.
    retention_ms: AtomicU64,
    /// Position of the first record with notes.
    noted_from: Lsn,
    /// Number of the oldest segment that has not been given up.
    oldest_segment: AtomicU64,
}

impl Kept {
    /// The history of a log that ends at `end`: the longest run of consecutive `segments` (ascending) up to the last,
    /// as far as `bytes_max` reaches back from the commit point.
    pub fn new(bytes_max: u64, noted_from: Lsn, segments: &[u64], end: Lsn, committed: Lsn) -> Self {
        let run =
            segments.iter().rev().enumerate().take_while(|(back, number)| **number + *back as u64 == segment_of(end.0));
        let oldest = run.last().map_or(segment_of(end.0), |(_, number)| *number);
        let kept = Self {
            bytes_max: AtomicU64::new(bytes_max),
            retention_ms: AtomicU64::new(0),
            noted_from,
            oldest_segment: AtomicU64::new(oldest),
        };
        kept.give_up(committed.min(end));
        kept
    }

    /// Gives up segments that a log ending at `end` is too long to keep. Returns the number of the oldest segment left.
    pub fn give_up(&self, end: Lsn) -> u64 {
        self.give_up_below(self.oldest_wanted(end))
    }

    /// The oldest segment that the size limit keeps in a log that ends at `end`.
    fn oldest_wanted(&self, end: Lsn) -> u64 {
        segment_of(end.0.saturating_sub(self.bytes_max()))
    }

    /// Gives up the segments below `oldest`. Returns the number of the oldest segment left.
    fn give_up_below(&self, oldest: u64) -> u64 {
        self.oldest_segment.fetch_max(oldest, Ordering::Relaxed).max(oldest)
    }

    /// Approximate maximum of the log bytes that are kept.
    pub fn bytes_max(&self) -> u64 {
        self.bytes_max.load(Ordering::Relaxed)
    }

    /// Position of the first record with notes.
    pub fn noted_from(&self) -> Lsn {
        self.noted_from
    }

    fn start(&self) -> Lsn {
        self.noted_from.max(Lsn(first_record(self.oldest_segment.load(Ordering::Relaxed))))
    }
}

/// Position of the first record with notes, in a log that ends at `end`; `None` if no notes are written. Notes of
/// earlier runs of the process count only if every run since has written notes.
pub(crate) fn noted_from(manifest: &Manifest, takes_notes: bool, end: Lsn) -> Option<Lsn> {
    takes_notes.then(|| manifest.noted_from.unwrap_or(end))
}

/// The history that the manifest tells of, in a log with these segments of which everything below `end` is applied;
/// `None` if it tells of none.
pub(crate) fn kept(manifest: &Manifest, segments: &[u64], end: Lsn) -> Option<Kept> {
    let (bytes_max, noted_from) = manifest.history_bytes.zip(manifest.noted_from)?;
    // The log of a secondary may go on after its applied part.
    let applied = segments.partition_point(|number| *number <= segment_of(end.0));
    Some(Kept::new(bytes_max, noted_from, &segments[..applied], end, manifest.committed.unwrap_or(end)))
}

/// Size of the history for a start that asks for `asked` bytes; `None` if it asks for no history. An existing history
/// keeps the size that it was created with or later resized to, as MongoDB's oplog does.
pub(crate) fn bytes_max(manifest: &Manifest, asked: Option<u64>) -> Option<u64> {
    let present = manifest.history_bytes.filter(|_| manifest.noted_from.is_some());
    asked.map(|asked| present.unwrap_or(asked))
}

impl Store {
    /// Whether batches need notes.
    pub fn keeps_history(&self) -> bool {
        self.kept.is_some()
    }

    /// The part of the log that can be read back; `None` if no history is kept.
    pub fn history_span(&self) -> Option<Range<Lsn>> {
        let kept = self.kept.as_ref()?;
        let end = self.watermark.visible();
        Some(kept.start().min(end)..end)
    }

    /// Approximate maximum of the log bytes that are kept; `None` if no history is kept.
    pub fn history_bytes_max(&self) -> Option<u64> {
        self.kept.as_ref().map(Kept::bytes_max)
    }

    /// Changes the size of the history, also for later starts, and gives up at once what no longer fits. Does nothing
    /// if no history is kept.
    ///
    /// # Errors
    /// As [`Store::checkpoint`].
    pub fn resize_history(&self, bytes_max: u64) -> Result<()> {
        let Some(kept) = &self.kept else { return Ok(()) };
        kept.bytes_max.store(bytes_max, Ordering::Relaxed);
        // A checkpoint writes the manifest and gives up segments.
        self.checkpoint()
    }

    /// Minimum age, in milliseconds, of records that the size limit may give up.
    pub fn history_retention_ms(&self) -> u64 {
        self.kept.as_ref().map_or(0, |kept| kept.retention_ms.load(Ordering::Relaxed))
    }

    /// Until the process ends, keeps all records younger than `retention_ms`, however large the history becomes. A
    /// shorter retention than before gives up older records at once.
    ///
    /// # Errors
    /// As [`Store::checkpoint`].
    pub fn retain_history(&self, retention_ms: u64) -> Result<()> {
        let Some(kept) = &self.kept else { return Ok(()) };
        let before_ms = kept.retention_ms.swap(retention_ms, Ordering::Relaxed);
        if retention_ms < before_ms { self.checkpoint() } else { Ok(()) }
    }

    /// Gives up segments that are both too far back and too old, in a log that ends at `end`. Returns the number of the
    /// oldest segment left.
    ///
    /// # Errors
    /// As [`History::next_record`].
    pub(crate) fn give_up_history(&self, kept: &Kept, end: Lsn) -> Result<u64> {
        let wanted = kept.oldest_wanted(end);
        let retention_ms = kept.retention_ms.load(Ordering::Relaxed);
        if retention_ms == 0 {
            return Ok(kept.give_up_below(wanted));
        }
        let young_ms = self.options.clock.now_ms().saturating_sub(retention_ms);
        let mut oldest = kept.oldest_segment.load(Ordering::Relaxed);
        // No record of a segment is younger than the first record of the next one.
        while oldest < wanted
            && self.moment_at(Lsn(first_record(oldest + 1)))?.is_some_and(|moment| moment.time_ms < young_ms)
        {
            oldest += 1;
        }
        Ok(kept.give_up_below(oldest))
    }

    /// Rung whenever more of the history is on disk; `None` if no history is kept.
    pub fn durable_bell(&self) -> Option<&Arc<Bell>> {
        match (&self.kept, &self.journal) {
            (Some(_), Journal::Log(log)) => Some(log.durable()),
            _ => None,
        }
    }

    /// Reads the durable and committed part of the log, and returns its end too. `from` is the start of a record or the
    /// end of the log, as an earlier [`History`] gave it. `None` if no record from there on is on disk and committed yet.
    /// Asks for a sync if committed records are not on disk.
    ///
    /// # Errors
    /// [`StorageError::HistoryLost`] if the log at `from` has been given up, and as [`History::next_record`].
    pub fn durable_history(&self, from: Lsn) -> Result<Option<(History, Lsn)>> {
        let (Some(span), Journal::Log(log)) = (self.history_span(), &self.journal) else {
            return Err(StorageError::HistoryLost);
        };
        if from < span.start {
            return Err(StorageError::HistoryLost);
        }
        let (committed, synced) = (self.committed().min(span.end), log.synced_lsn());
        let end = committed.min(synced);
        if synced < committed {
            self.hurry(committed);
        }
        if end <= from {
            return Ok(None);
        }
        Ok(Some((History::new(Arc::clone(log), from..end, Direction::Forward), end)))
    }

    /// The position of the first record that is not early, as in [`Store::history`]; `None` if no history is kept.
    ///
    /// # Errors
    /// As [`History::next_record`].
    pub fn history_place(&self, is_early: &dyn Fn(Moment) -> bool) -> Result<Option<Lsn>> {
        let (Some(span), Journal::Log(log)) = (self.history_span(), &self.journal) else { return Ok(None) };
        log.first_not_early(span, is_early).map(Some)
    }

    /// Time of the first record at or after `lsn`; for a record of a chain, the time of the chain. `None` if there is
    /// no such record yet, and if no history is kept.
    ///
    /// # Errors
    /// As [`History::next_record`].
    pub fn moment_at(&self, lsn: Lsn) -> Result<Option<Moment>> {
        let (Some(span), Journal::Log(log)) = (self.history_span(), &self.journal) else { return Ok(None) };
        let mut history = History::new(Arc::clone(log), lsn..span.end.max(lsn), Direction::Forward);
        let next = history.next_record()?;
        Ok(next.map(|record| record.chained.map_or(record.moment, |chained| chained.last)))
    }

    /// Reads back from `end` to `from`, which both end records; `None` if no history is kept.
    pub(crate) fn history_between(&self, from: Lsn, end: Lsn) -> Option<History> {
        let (Some(span), Journal::Log(log)) = (self.history_span(), &self.journal) else { return None };
        Some(History::new(Arc::clone(log), span.start.max(from).min(end)..end, Direction::Backward))
    }

    /// Reads only the record that begins at `lsn`; `None` if it cannot be read back.
    pub fn history_at(&self, lsn: Lsn) -> Option<History> {
        let (Some(span), Journal::Log(log)) = (self.history_span(), &self.journal) else { return None };
        span.contains(&lsn).then(|| History::new(Arc::clone(log), lsn..Lsn(lsn.0 + 1), Direction::Forward))
    }

    /// Position and time of the first record of the history; `None` if no history is kept.
    ///
    /// # Errors
    /// As [`History::next_record`].
    pub fn oldest_moment(&self) -> Result<Option<Moment>> {
        let Some(mut history) = self.history(Direction::Forward, &|_| false)? else { return Ok(None) };
        Ok(history.next_record()?.map(|record| record.moment))
    }

    /// Whether all records since the notes began can still be read back.
    pub fn history_is_whole(&self) -> bool {
        self.kept.as_ref().is_some_and(|kept| kept.start() == kept.noted_from())
    }

    /// Waits until all records that readers see now are on disk. The committed ones are part of
    /// [`Store::durable_history`] then.
    ///
    /// # Errors
    /// As syncing the log.
    pub fn sync_history(&self) -> Result<()> {
        match self.history_span() {
            Some(span) => self.journal.sync_blocking(span.end),
            None => Ok(()),
        }
    }

    /// Follows writes to a collection (`db.coll`), a database (`db.`) or all databases (the empty name), from the
    /// records that readers do not see yet. `None` if no history is kept.
    pub fn follow_names(&self, scope: &str) -> Option<Following> {
        match (&self.kept, &self.journal) {
            (Some(_), Journal::Log(log)) => Some(log.followers().follow(scope, || log.next_lsn())),
            _ => None,
        }
    }

    /// Whether there is nothing new for a follower that has read up to `from`.
    pub fn quiet(&self, following: &Following, from: Lsn) -> Quiet {
        let Journal::Log(log) = &self.journal else { return Quiet::No };
        if self.is_commit_held() {
            // The followers know only the end that readers see.
            return Quiet::No;
        }
        // The order matters: read the time before the end, so that the record of that time stands before the end; then
        // check that all records before the end have been noted.
        let time = self.newest_time();
        let end = self.watermark.visible();
        let now = log.followers().all_are_told().then_some((end, time));
        log.followers().quiet(following, from, now, log.synced_lsn())
    }

    /// Sets the function that finds collection names in a batch, for the followers.
    pub fn set_names_of(&self, names_of: NamesOf) {
        if let Journal::Log(log) = &self.journal {
            log.followers().set_names_of(names_of);
        }
    }

    /// Asks for a sync of the log up to `end`, so that listeners of [`Store::durable_bell`] are woken soon.
    pub(crate) fn hurry(&self, end: Lsn) {
        // One such sync is pending at a time. A listener that still misses records after the ring asks again.
        if !self.is_hurried.swap(true, Ordering::AcqRel) {
            let is_hurried = Arc::clone(&self.is_hurried);
            let last = Lsn(end.0.saturating_sub(1));
            self.journal.on_durable(last, Box::new(move |_| is_hurried.store(false, Ordering::Release)));
        }
    }

    /// Reads the history up to now, without the early records. `is_early` must hold for all records before some
    /// position and for none after it. `None` if no history is kept.
    ///
    /// # Errors
    /// As [`History::next_record`].
    pub fn history(&self, direction: Direction, is_early: &dyn Fn(Moment) -> bool) -> Result<Option<History>> {
        let (Some(span), Journal::Log(log)) = (self.history_span(), &self.journal) else { return Ok(None) };
        let start = log.first_not_early(span.clone(), is_early)?;
        Ok(Some(History::new(Arc::clone(log), start..span.end, direction)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: u64 = crate::SEGMENT_BYTES;
    const END: Lsn = Lsn(5 * SEGMENT + 1000);

    #[test]
    fn whole_segments_are_kept_behind_the_end_and_none_behind_a_gap() {
        let kept = Kept::new(2 * SEGMENT, Lsn(0), &[1, 3, 4, 5], END, END);
        assert_eq!(kept.start(), Lsn(first_record(3)));
        assert_eq!(kept.give_up(Lsn(6 * SEGMENT + 1000)), 4);
        assert_eq!(kept.start(), Lsn(first_record(4)));
        let kept = Kept::new(9 * SEGMENT, Lsn(0), &[1, 3, 4, 5], END, END);
        assert_eq!(kept.start(), Lsn(first_record(3)), "segment 2 is missing");
        let kept = Kept::new(9 * SEGMENT, Lsn(5 * SEGMENT + 500), &[3, 4, 5], END, END);
        assert_eq!(kept.start(), Lsn(5 * SEGMENT + 500), "notes begin later");
        let kept = Kept::new(1, Lsn(0), &[3, 4, 5], END, Lsn(4 * SEGMENT + 1000));
        assert_eq!(kept.start(), Lsn(first_record(4)), "the rest is not committed");
    }

    #[test]
    fn notes_begin_anew_after_a_run_without_them() {
        let with = Manifest { noted_from: Some(Lsn(100)), ..Manifest::default() };
        assert_eq!(noted_from(&with, true, Lsn(200)), Some(Lsn(100)));
        assert_eq!(noted_from(&with, false, Lsn(200)), None);
        assert_eq!(noted_from(&Manifest::default(), true, Lsn(200)), Some(Lsn(200)));
    }
}
