//! How far the log can be read back, and reading it.
//!
//! A record tells what became of documents, but neither the name of their collection nor the `_id` of one that is gone:
//! [`Batch::note`](crate::Batch::note) adds that. So a history begins where notes began, or where the oldest segment
//! that was kept for it does.

use crate::journal::Journal;
use crate::log::{History, Moment, first_record, segment_of};
use crate::manifest::Manifest;
use crate::{Bell, Direction, Following, Lsn, NamesOf, Quiet, Result, StorageError, Store};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a store keeps of its log for those who read it as a history.
pub(crate) struct Kept {
    /// Whole segments are kept as long as about that much of the log stands behind them, in bytes.
    bytes_max: AtomicU64,
    /// Segments with younger records are kept however long the log is; milliseconds. It ends with the process.
    retention_ms: AtomicU64,
    /// Where the notes begin.
    noted_from: Lsn,
    /// The oldest segment that nobody has given up.
    oldest_segment: AtomicU64,
}

impl Kept {
    /// What a log that ends at `end` has: a run of `segments`, ascending, up to the last.
    pub fn new(bytes_max: u64, noted_from: Lsn, segments: &[u64], end: Lsn) -> Self {
        let run =
            segments.iter().rev().enumerate().take_while(|(back, number)| **number + *back as u64 == segment_of(end.0));
        let oldest = run.last().map_or(segment_of(end.0), |(_, number)| *number);
        let kept = Self {
            bytes_max: AtomicU64::new(bytes_max),
            retention_ms: AtomicU64::new(0),
            noted_from,
            oldest_segment: AtomicU64::new(oldest),
        };
        kept.give_up(end);
        kept
    }

    /// Gives up what is too old for a log that ends at `end`; the oldest segment that is left.
    pub fn give_up(&self, end: Lsn) -> u64 {
        self.give_up_below(self.oldest_wanted(end))
    }

    /// The oldest segment that the size keeps of a log that ends at `end`.
    fn oldest_wanted(&self, end: Lsn) -> u64 {
        segment_of(end.0.saturating_sub(self.bytes_max()))
    }

    /// Gives up the segments below `oldest`; the oldest one that is left.
    fn give_up_below(&self, oldest: u64) -> u64 {
        self.oldest_segment.fetch_max(oldest, Ordering::Relaxed).max(oldest)
    }

    /// Most bytes of the log that are kept, about.
    pub fn bytes_max(&self) -> u64 {
        self.bytes_max.load(Ordering::Relaxed)
    }

    /// Where the notes begin.
    pub fn noted_from(&self) -> Lsn {
        self.noted_from
    }

    fn start(&self) -> Lsn {
        self.noted_from.max(Lsn(first_record(self.oldest_segment.load(Ordering::Relaxed))))
    }
}

/// Where notes begin in a log that ends at `end`. Notes go on from one run of the process to the next only if every
/// run takes them.
pub(crate) fn noted_from(manifest: &Manifest, takes_notes: bool, end: Lsn) -> Option<Lsn> {
    takes_notes.then(|| manifest.noted_from.unwrap_or(end))
}

/// How much of the log a start keeps that asks for so much. A history that goes on has the size that it was begun with or was
/// given since, as MongoDB's oplog has.
pub(crate) fn bytes_max(manifest: &Manifest, asked: Option<u64>) -> Option<u64> {
    let present = manifest.history_bytes.filter(|_| manifest.noted_from.is_some());
    asked.map(|asked| present.unwrap_or(asked))
}

impl Store {
    /// Whether batches are to have notes.
    pub fn keeps_history(&self) -> bool {
        self.kept.is_some()
    }

    /// The part of the log that can be read back; `None` where nothing is kept for that.
    pub fn history_span(&self) -> Option<Range<Lsn>> {
        let kept = self.kept.as_ref()?;
        let end = self.watermark.visible();
        Some(kept.start().min(end)..end)
    }

    /// Most bytes of the log that are kept, about; `None` where nothing is.
    pub fn history_bytes_max(&self) -> Option<u64> {
        self.kept.as_ref().map(Kept::bytes_max)
    }

    /// Keeps another size of the history, now and after later starts. What is too old is given up at once. Nothing where no
    /// history is kept.
    ///
    /// # Errors
    /// As [`Store::checkpoint`].
    pub fn resize_history(&self, bytes_max: u64) -> Result<()> {
        let Some(kept) = &self.kept else { return Ok(()) };
        kept.bytes_max.store(bytes_max, Ordering::Relaxed);
        // It writes the manifest, and gives up segments.
        self.checkpoint()
    }

    /// How old records are at least that are given up for the size of the history, in milliseconds.
    pub fn history_retention_ms(&self) -> u64 {
        self.kept.as_ref().map_or(0, |kept| kept.retention_ms.load(Ordering::Relaxed))
    }

    /// Gives up no record that is younger, however large the history becomes, until the process ends. What was kept for
    /// longer is given up at once.
    ///
    /// # Errors
    /// As [`Store::checkpoint`].
    pub fn retain_history(&self, retention_ms: u64) -> Result<()> {
        let Some(kept) = &self.kept else { return Ok(()) };
        let before_ms = kept.retention_ms.swap(retention_ms, Ordering::Relaxed);
        if retention_ms < before_ms { self.checkpoint() } else { Ok(()) }
    }

    /// Gives up what is too old of the history of a log that ends at `end`; the oldest segment that is left.
    ///
    /// # Errors
    /// As [`History::next_record`].
    pub(crate) fn give_up_history(&self, kept: &Kept, end: Lsn) -> Result<u64> {
        let wanted = kept.oldest_wanted(end);
        let retention_ms = kept.retention_ms.load(Ordering::Relaxed);
        if retention_ms == 0 {
            return Ok(kept.give_up_below(wanted));
        }
        let young_ms = (self.options.clock)().saturating_sub(retention_ms);
        let mut oldest = kept.oldest_segment.load(Ordering::Relaxed);
        // The records of a segment are not younger than the first one behind it.
        while oldest < wanted
            && self.moment_at(Lsn(first_record(oldest + 1)))?.is_some_and(|moment| moment.time_ms < young_ms)
        {
            oldest += 1;
        }
        Ok(kept.give_up_below(oldest))
    }

    /// Rung whenever more of the history is on disk; `None` where none is kept.
    pub fn durable_bell(&self) -> Option<&Arc<Bell>> {
        match (&self.kept, &self.journal) {
            (Some(_), Journal::Log(log)) => Some(log.durable()),
            _ => None,
        }
    }

    /// Reads what is on disk of the log from a place where a record begins or the log ends, which an earlier
    /// [`History`] gave, with its end; `None` where there is nothing yet. Then what readers see already is on its way to the disk.
    ///
    /// # Errors
    /// [`StorageError::HistoryLost`] where the place has been given up; as [`History::next_record`].
    pub fn durable_history(&self, from: Lsn) -> Result<Option<(History, Lsn)>> {
        let (Some(span), Journal::Log(log)) = (self.history_span(), &self.journal) else {
            return Err(StorageError::HistoryLost);
        };
        if from < span.start {
            return Err(StorageError::HistoryLost);
        }
        let end = span.end.min(log.synced_lsn());
        if end < span.end {
            self.hurry(span.end);
        }
        if end <= from {
            return Ok(None);
        }
        Ok(Some((History::new(Arc::clone(log), from..end, Direction::Forward), end)))
    }

    /// The place of the first record that is not too early, as [`Store::history`] has it.
    ///
    /// # Errors
    /// As [`History::next_record`].
    pub fn history_place(&self, is_early: &dyn Fn(Moment) -> bool) -> Result<Option<Lsn>> {
        let (Some(span), Journal::Log(log)) = (self.history_span(), &self.journal) else { return Ok(None) };
        log.first_not_early(span, is_early).map(Some)
    }

    /// When the first record at or behind a place happened, all of its chain if it is of one; `None` where there is none yet,
    /// and where no log is kept.
    ///
    /// # Errors
    /// As [`History::next_record`].
    pub fn moment_at(&self, lsn: Lsn) -> Result<Option<Moment>> {
        let (Some(span), Journal::Log(log)) = (self.history_span(), &self.journal) else { return Ok(None) };
        let mut history = History::new(Arc::clone(log), lsn..span.end.max(lsn), Direction::Forward);
        let next = history.next_record()?;
        Ok(next.map(|record| record.chained.map_or(record.moment, |chained| chained.last)))
    }

    /// Reads the record that begins at a place, and no other; `None` where it cannot be read back.
    pub fn history_at(&self, lsn: Lsn) -> Option<History> {
        let (Some(span), Journal::Log(log)) = (self.history_span(), &self.journal) else { return None };
        span.contains(&lsn).then(|| History::new(Arc::clone(log), lsn..Lsn(lsn.0 + 1), Direction::Forward))
    }

    /// Where the record stands at which the history begins, and when it happened; `None` where none is kept.
    ///
    /// # Errors
    /// As [`History::next_record`].
    pub fn oldest_moment(&self) -> Result<Option<Moment>> {
        let Some(mut history) = self.history(Direction::Forward, &|_| false)? else { return Ok(None) };
        Ok(history.next_record()?.map(|record| record.moment))
    }

    /// Whether all that happened since notes began can still be read back: nothing of it has been given up.
    pub fn history_is_whole(&self) -> bool {
        self.kept.as_ref().is_some_and(|kept| kept.start() == kept.noted_from())
    }

    /// Waits until all that readers see by now is on disk, and so part of [`Store::durable_history`].
    ///
    /// # Errors
    /// As syncing the log.
    pub fn sync_history(&self) -> Result<()> {
        match self.history_span() {
            Some(span) => self.journal.sync_blocking(span.end),
            None => Ok(()),
        }
    }

    /// Follows what is written in a collection (`db.coll`), a database (`db.`) or everywhere (the empty name), of all that
    /// readers do not see yet; `None` where no history is kept.
    pub fn follow_names(&self, scope: &str) -> Option<Following> {
        match (&self.kept, &self.journal) {
            (Some(_), Journal::Log(log)) => Some(log.followers().follow(scope, || log.next_lsn())),
            _ => None,
        }
    }

    /// Whether there is nothing for a follower that has read up to a place.
    pub fn quiet(&self, following: &Following, from: Lsn) -> Quiet {
        let Journal::Log(log) = &self.journal else { return Quiet::No };
        // In this order: what is noted by now is all that was seen up to that end. The record of that time is before it.
        let time = self.newest_time();
        let end = self.watermark.visible();
        let now = log.followers().all_are_told().then_some((end, time));
        log.followers().quiet(following, from, now, log.synced_lsn())
    }

    /// Says how the names are found in a batch that followers go by.
    pub fn set_names_of(&self, names_of: NamesOf) {
        if let Journal::Log(log) = &self.journal {
            log.followers().set_names_of(names_of);
        }
    }

    /// Has what was written up to `end` synced soon; who waits for [`Store::durable_bell`] is to hear of it.
    pub(crate) fn hurry(&self, end: Lsn) {
        // One sync at a time is asked for: whoever hears of it and misses something asks again.
        if !self.is_hurried.swap(true, Ordering::AcqRel) {
            let is_hurried = Arc::clone(&self.is_hurried);
            let last = Lsn(end.0.saturating_sub(1));
            self.journal.on_durable(last, Box::new(move |_| is_hurried.store(false, Ordering::Release)));
        }
    }

    /// Reads all that can be read back of the log up to now, but for what is too early; that stands before all that is
    /// not. `None` where nothing is kept.
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

    #[test]
    fn whole_segments_are_kept_behind_the_end_and_none_behind_a_gap() {
        let kept = Kept::new(2 * SEGMENT, Lsn(0), &[1, 3, 4, 5], Lsn(5 * SEGMENT + 1000));
        assert_eq!(kept.start(), Lsn(first_record(3)));
        assert_eq!(kept.give_up(Lsn(6 * SEGMENT + 1000)), 4);
        assert_eq!(kept.start(), Lsn(first_record(4)));
        let kept = Kept::new(9 * SEGMENT, Lsn(0), &[1, 3, 4, 5], Lsn(5 * SEGMENT + 1000));
        assert_eq!(kept.start(), Lsn(first_record(3)), "segment 2 is missing");
        let kept = Kept::new(9 * SEGMENT, Lsn(5 * SEGMENT + 500), &[3, 4, 5], Lsn(5 * SEGMENT + 1000));
        assert_eq!(kept.start(), Lsn(5 * SEGMENT + 500), "notes begin later");
    }

    #[test]
    fn notes_begin_anew_after_a_run_without_them() {
        let with = Manifest { noted_from: Some(Lsn(100)), ..Manifest::default() };
        assert_eq!(noted_from(&with, true, Lsn(200)), Some(Lsn(100)));
        assert_eq!(noted_from(&with, false, Lsn(200)), None);
        assert_eq!(noted_from(&Manifest::default(), true, Lsn(200)), Some(Lsn(200)));
    }
}
