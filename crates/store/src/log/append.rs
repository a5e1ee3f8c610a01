//! The log, and appending to it: LSNs are assigned under one lock, and bytes are buffered until a group of them goes to
//! the kernel.

use super::chain::Reserved;
use super::group_commit::GroupCommit;
use super::history::Moment;
use super::preallocate::Preallocator;
use super::raw_places::RawPlaces;
use super::record::{HEADER_BYTES, Header, Kind};
use super::recovery::{self, RecoveredLog, Recovery};
use super::segment::{SEGMENT_BYTES, Segment, first_record, segment_of};
use crate::disk_room::{DiskRoom, Draw};
use crate::followers::Followers;
use crate::journal::AppendedRecord;
use crate::latencies::{Latencies, LatencyCounts};
use crate::planted::{self, Bug};
use crate::terms::SharedTerms;
use crate::{Batch, Bell, Lsn, Result, StorageError, make_directory};
use arc_swap::ArcSwap;
use bunko_host::Clock;
use bunko_sync::thread;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Value of `shipped_from` until the log has looked for that segment.
pub(super) const UNKNOWN: u64 = u64::MAX;
/// Maximum number of buffered bytes; the append that reaches it writes them to the kernel itself.
pub(super) const BUFFER_BYTES_MAX: usize = 1 << 20;
/// Where the lower 32 bits of positions wrap, a new second begins, so that they are unique within a second.
pub(super) const SEGMENTS_PER_SECOND_MAX: u64 = (1 << 32) / SEGMENT_BYTES;

/// Options of the log.
#[derive(Clone)]
pub struct LogOptions {
    /// Longest time that a record stays unsynced without a request (`storage.journal.commitIntervalMs`).
    pub commit_interval: Duration,
    /// Bytes of the log that are kept as a history, in whole segments (`replication.oplogSizeMB`); `None` keeps only
    /// what is needed for other purposes.
    pub history_bytes_max: Option<u64>,
    /// Called once when a write or sync fails. A server stops itself here, because nothing may be acknowledged
    /// afterwards.
    pub on_failure: Arc<dyn Fn(&StorageError) + Send + Sync>,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self { commit_interval: Duration::from_millis(100), history_bytes_max: None, on_failure: Arc::new(|_| ()) }
    }
}

/// The log's counters, for `serverStatus` and the lab.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs)]
pub struct LogStatistics {
    pub next_lsn: u64,
    pub synced_lsn: u64,
    pub appended_records: u64,
    pub written_groups: u64,
    pub synced_groups: u64,
    pub segments: u64,
    /// Appends that found the next segment not ready.
    pub segment_waits: u64,
    /// Durations of the fdatasync calls on segments.
    pub sync_latencies: LatencyCounts,
}

/// The append-only log of one data directory.
pub struct Log {
    pub(super) directory: PathBuf,
    pub(super) tail: Mutex<Tail>,
    /// Locked while bytes go to the kernel, so that groups are written in order; contains a spent buffer for reuse.
    /// Locked before `tail` if both are needed.
    pub(super) writing: Mutex<Vec<u8>>,
    /// End of the log in the kernel.
    pub(super) written: AtomicU64,
    /// End of the log on disk.
    pub(super) synced: AtomicU64,
    /// Segments by number. Replaced as a whole, once in 64 MB, so that readers share no lock.
    pub(super) segments: ArcSwap<FxHashMap<u64, Arc<Segment>>>,
    pub(super) preallocator: Arc<Preallocator>,
    pub(super) disk: Arc<DiskRoom>,
    preallocating: Mutex<Option<thread::JoinHandle<()>>>,
    pub(super) group_commit: GroupCommit,
    pub(super) has_failed: AtomicBool,
    on_failure: Arc<dyn Fn(&StorageError) + Send + Sync>,
    pub(super) appended_records: AtomicU64,
    pub(super) written_groups: AtomicU64,
    pub(super) segment_waits: AtomicU64,
    pub(super) sync_latencies: Latencies,
    /// Rung whenever more is on disk.
    durable: Arc<Bell>,
    /// Rung whenever more is in the kernel or on disk, and when the log is truncated.
    moved: Arc<Bell>,
    followers: Arc<Followers>,
    /// Segments that are no longer needed, but that a reader may still be reading.
    pub(super) leaving: Mutex<Vec<Arc<Segment>>>,
    /// Readers that ship the log.
    pub(super) raw_places: RawPlaces,
    /// Number of the segment from which no later one is missing; see [`Log::oldest_shippable_segment`].
    pub(super) shipped_from: AtomicU64,
    /// Number of truncations. It changes under `tail`, before any byte of the log does.
    pub(super) truncations: AtomicU64,
    /// Held while segments are synced, and while the log is truncated.
    pub(super) syncing: Mutex<()>,
    recovery: Recovery,
    terms: Arc<SharedTerms>,
    pub(super) clock: Clock,
}

/// The end of the log, and the bytes that are not yet in the kernel.
pub(super) struct Tail {
    pub(super) next: Lsn,
    /// Time of the last record. It never decreases; see [`crate::Moment`].
    pub(super) time_ms: u64,
    /// Unwritten ends of full segments.
    pub(super) sealed: Vec<Group>,
    pub(super) current: Group,
    /// Position reserved for the last record of a chain, ahead of `next`.
    pub(super) reserved: Option<Reserved>,
}

/// Consecutive bytes of one segment that are not yet in the kernel.
pub(super) struct Group {
    pub(super) segment: Arc<Segment>,
    pub(super) position: u64,
    pub(super) bytes: Vec<u8>,
}

impl Log {
    /// Opens a recovered log for appending. No record of it may have been written after `time_ms`.
    pub(crate) fn start(
        recovered: RecoveredLog,
        options: LogOptions,
        clock: Clock,
        time_ms: u64,
        disk: &Arc<DiskRoom>,
    ) -> Result<Arc<Self>> {
        make_directory(&recovered.directory)?;
        recovered.clear_away()?;
        recovered.sync()?;
        let RecoveredLog { directory, segments, end, time_ms: last_time_ms, terms, recovery, .. } = recovered;
        let directory = directory.as_path();
        let mut segments: FxHashMap<u64, Arc<Segment>> =
            segments.into_iter().map(|segment| (segment.number, Arc::new(segment))).collect();
        let number = segment_of(end.0);
        let segment = match segments.get(&number) {
            Some(segment) => Arc::clone(segment),
            None => Arc::new(recovery::create_first(directory, number, disk)?),
        };
        segments.insert(number, Arc::clone(&segment));
        // On a nearly full disk, the present segment must be made before the next one.
        let (preallocator, thread) = Preallocator::start(directory, number + 1, disk);
        let log = Arc::new(Self {
            directory: directory.to_owned(),
            tail: Mutex::new(Tail {
                next: end,
                time_ms: if begins_anew(end) {
                    next_second(last_time_ms.max(time_ms))
                } else {
                    last_time_ms.max(time_ms)
                },
                sealed: Vec::new(),
                current: Group { segment, position: end.0, bytes: Vec::new() },
                reserved: None,
            }),
            writing: Mutex::new(Vec::new()),
            written: AtomicU64::new(end.0),
            synced: AtomicU64::new(end.0),
            segments: ArcSwap::from_pointee(segments),
            preallocator,
            disk: Arc::clone(disk),
            preallocating: Mutex::new(Some(thread)),
            group_commit: GroupCommit::default(),
            has_failed: AtomicBool::new(false),
            on_failure: options.on_failure,
            appended_records: AtomicU64::new(0),
            written_groups: AtomicU64::new(0),
            segment_waits: AtomicU64::new(0),
            sync_latencies: Latencies::default(),
            durable: Arc::default(),
            moved: Arc::default(),
            followers: Arc::default(),
            leaving: Mutex::default(),
            raw_places: RawPlaces::default(),
            shipped_from: AtomicU64::new(UNKNOWN),
            truncations: AtomicU64::new(0),
            syncing: Mutex::default(),
            recovery,
            terms: Arc::new(SharedTerms::new(terms)),
            clock,
        });
        GroupCommit::start(&log, options.commit_interval);
        Ok(log)
    }

    /// The clock of the log's store.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The log's followers.
    pub(crate) fn followers(&self) -> &Arc<Followers> {
        &self.followers
    }

    /// Rung whenever more is on disk.
    pub(crate) fn durable(&self) -> &Arc<Bell> {
        &self.durable
    }

    /// Rung whenever more is in the kernel or on disk, and when the log is truncated.
    pub(crate) fn moved(&self) -> &Arc<Bell> {
        &self.moved
    }

    /// The terms of the log.
    pub(crate) fn terms(&self) -> &Arc<SharedTerms> {
        &self.terms
    }

    /// Figures of the log's recovery.
    pub fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    /// Assigns a position to the batch and buffers its record. `in_order` is called under the log's lock, in order of
    /// LSNs. If the batch does not fit before the position reserved for the last record of a chain, that record is
    /// placed first, and `in_order` is called for it too.
    ///
    /// # Errors
    /// Before any part of the batch is kept: [`StorageError::OutOfDiskSpace`], [`StorageError::RecordTooLarge`],
    /// [`StorageError::LogFailed`].
    pub(crate) fn append(
        &self,
        batch: &Batch<'_>,
        draw: Draw,
        time_ms: u64,
        in_order: impl FnMut(Moment),
    ) -> Result<AppendedRecord> {
        self.append_as(Kind::Batch, batch, draw, |last_ms| last_ms.max(time_ms), in_order)
    }

    /// Appends the record of a term. Its time is in a later second than that of any earlier record.
    ///
    /// # Errors
    /// As [`Log::append`].
    pub(crate) fn append_term(
        &self,
        batch: &Batch<'_>,
        draw: Draw,
        time_ms: u64,
        in_order: impl FnMut(Moment),
    ) -> Result<AppendedRecord> {
        let next: fn(u64) -> u64 = if planted::active(Bug::TermInSameSecond) { |last_ms| last_ms } else { next_second };
        self.append_as(Kind::Term, batch, draw, |last_ms| next(last_ms).max(time_ms), in_order)
    }

    /// As [`Log::append`]. `dated` makes the record's time from that of the last record.
    #[inline]
    fn append_as(
        &self,
        kind: Kind,
        batch: &Batch<'_>,
        draw: Draw,
        dated: impl FnOnce(u64) -> u64,
        mut in_order: impl FnMut(Moment),
    ) -> Result<AppendedRecord> {
        let length = record_length(batch)?;
        let effects_checksum = bunko_checksum::crc32c(batch.encoded_effects());
        let mut tail = self.tail.lock();
        if self.has_failed() {
            return Err(StorageError::LogFailed);
        }
        if tail.reserved.as_ref().is_some_and(|reserved| !reserved.leaves_room_for(tail.next, length)) {
            self.place_reserved(&mut tail, &mut in_order);
        }
        self.make_way(&mut tail, length, draw)?;
        tail.time_ms = dated(tail.time_ms);
        let header = self.put(&mut tail, batch, effects_checksum, kind);
        let is_full = tail.current.bytes.len() >= BUFFER_BYTES_MAX;
        in_order(Moment { lsn: header.lsn, end: tail.next, time_ms: tail.time_ms });
        drop(tail);
        if is_full {
            // The record has its position and will be applied even if this write fails. In that case the log has
            // failed, and acknowledging the record returns the error.
            let _ = self.write_through(header.lsn);
        }
        Ok(AppendedRecord { lsn: header.lsn, documents_position: header.documents_position() })
    }

    /// Puts a record, for which there must be room, at the end of the log.
    pub(super) fn put(&self, tail: &mut Tail, batch: &Batch<'_>, effects_checksum: u32, kind: Kind) -> Header {
        let effects = batch.encoded_effects();
        let length = HEADER_BYTES + batch.len_bytes();
        let header = Header {
            length: length as u32,
            lsn: tail.next,
            synced: Lsn(self.synced.load(Ordering::Relaxed)),
            time_ms: tail.time_ms,
            effects_length: effects.len() as u32,
            effects_checksum,
            kind,
        };
        let bytes = &mut tail.current.bytes;
        bytes.extend_from_slice(&header.encode());
        bytes.extend_from_slice(effects);
        for document in batch.documents() {
            bytes.extend_from_slice(document);
        }
        tail.next = Lsn(header.lsn.0 + length as u64);
        self.appended_records.fetch_add(1, Ordering::Relaxed);
        header
    }

    /// Marks the log as failed: a group may be half written, or a failed sync may have dropped pages, so nothing may be
    /// acknowledged from here on.
    pub(crate) fn fail(&self, error: StorageError) -> StorageError {
        if !self.has_failed.swap(true, Ordering::SeqCst) {
            (self.on_failure)(&error);
        }
        error
    }

    /// Whether a write or sync has failed. A failed log takes no more records.
    pub fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }

    /// Makes all later records no earlier than `time_ms`.
    pub(crate) fn advance_time(&self, time_ms: u64) {
        let mut tail = self.tail.lock();
        tail.time_ms = tail.time_ms.max(time_ms);
    }

    /// Time of the last record, in milliseconds since 1970; 0 if there has been none.
    pub(crate) fn last_time_ms(&self) -> u64 {
        self.tail.lock().time_ms
    }

    /// Position after the last record.
    pub fn next_lsn(&self) -> Lsn {
        self.tail.lock().next
    }

    /// Exclusive upper bound of the positions of all records that engines have applied by now, including a record with
    /// a reserved position.
    pub fn applied_before(&self) -> Lsn {
        let tail = self.tail.lock();
        tail.reserved.as_ref().map_or(tail.next, Reserved::end)
    }

    /// The log's counters.
    pub fn statistics(&self) -> LogStatistics {
        LogStatistics {
            next_lsn: self.next_lsn().0,
            synced_lsn: self.synced.load(Ordering::Relaxed),
            appended_records: self.appended_records.load(Ordering::Relaxed),
            written_groups: self.written_groups.load(Ordering::Relaxed),
            synced_groups: self.group_commit.synced_groups(),
            segments: self.segments.load().len() as u64,
            segment_waits: self.segment_waits.load(Ordering::Relaxed),
            sync_latencies: self.sync_latencies.counts(),
        }
    }

    /// Syncs the log and stops its threads.
    pub(crate) fn close(&self) -> Result<()> {
        let end = self.next_lsn();
        let synced = self.sync_blocking(end);
        self.group_commit.close();
        self.group_commit.join();
        self.stop_preallocating();
        synced
    }

    /// Stops making segments ahead, and returns once none is being made.
    pub(super) fn stop_preallocating(&self) {
        self.preallocator.close();
        if let Some(thread) = self.preallocating.lock().take() {
            let _ = thread.join();
        }
    }
}

/// Length of the batch's record in bytes.
pub(super) fn record_length(batch: &Batch<'_>) -> Result<u64> {
    let length_bytes = (HEADER_BYTES + batch.len_bytes()) as u64;
    // A segment also holds its own header, and the seal after its last record.
    if length_bytes > SEGMENT_BYTES - first_record(0) - HEADER_BYTES as u64 {
        return Err(StorageError::RecordTooLarge { length_bytes });
    }
    Ok(length_bytes)
}

/// Whether a record at `next` is the first after the lower 32 bits of positions wrap. If the log ends there at a start,
/// no record tells that its second has begun.
pub(super) fn begins_anew(next: Lsn) -> bool {
    let number = segment_of(next.0);
    number > 0 && number.is_multiple_of(SEGMENTS_PER_SECOND_MAX) && next.0 == first_record(number)
}

pub(super) fn next_second(time_ms: u64) -> u64 {
    (time_ms / 1000 + 1) * 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_begins_where_the_lower_half_of_places_does_whatever_a_kill_left() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let number = 2 * SEGMENTS_PER_SECOND_MAX;
        let start = |from: u64| {
            let found = recovery::recover(directory.path(), Lsn(from), &mut |_, _| Ok(())).expect("there");
            Log::start(found, LogOptions::default(), Clock::machine(), 5500, &DiskRoom::unlimited()).expect("starts")
        };
        // The segment before was sealed; this one has no record yet.
        drop(recovery::create_first(directory.path(), number, &DiskRoom::unlimited()).expect("made"));
        let log = start(first_record(number));
        assert_eq!(log.last_time_ms(), 6000);
        let appended = log.append(&Batch::new(), Draw::Free, 5600, |_| ()).expect("placed");
        assert_eq!((appended.lsn, log.last_time_ms()), (Lsn(first_record(number)), 6000));
        log.close().expect("closes");
        drop(log);
        assert_eq!(start(first_record(number)).last_time_ms(), 6000, "no other second has begun since");
    }

    #[test]
    fn a_log_that_is_dropped_makes_no_more_segments() {
        for _ in 0..20 {
            let directory = tempfile::tempdir().expect("temporary directory");
            let found = recovery::recover(directory.path(), Lsn(0), &mut |_, _| Ok(())).expect("nothing is there");
            drop(
                Log::start(found, LogOptions::default(), Clock::machine(), 5500, &DiskRoom::unlimited())
                    .expect("starts"),
            );
            let files = std::fs::read_dir(directory.path()).expect("readable");
            let mut names = files.map(|file| file.expect("readable").file_name().to_string_lossy().into_owned());
            assert!(names.all(|name| name.ends_with(".segment")), "one is being made still");
        }
    }

    #[test]
    fn a_record_that_has_its_place_is_not_refused() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let found = recovery::recover(directory.path(), Lsn(0), &mut |_, _| Ok(())).expect("nothing is there");
        let log =
            Log::start(found, LogOptions::default(), Clock::machine(), 0, &DiskRoom::unlimited()).expect("starts");
        {
            let segment = &mut log.tail.lock().current.segment;
            let file = std::fs::File::open(&segment.path).expect("there, and not to be written to");
            *segment = Arc::new(Segment::new(segment.number, file, segment.path.clone()).expect("there"));
        }
        let mut batch = Batch::new();
        batch.insert_record(crate::KeyspaceId(1), crate::RecordId(1), vec![7; BUFFER_BYTES_MAX]);
        let mut place = None;
        let appended = log.append(&batch, Draw::Free, 1, |moment| place = Some(moment.lsn)).expect("it has its place");
        assert_eq!(place, Some(appended.lsn));
        assert!(log.write(appended.lsn).is_err());
        assert!(matches!(log.append(&batch, Draw::Free, 1, |_| ()), Err(StorageError::LogFailed)));
    }
}
