//! The log, and appending to it: LSNs are given under one lock, and bytes wait until a group of them goes to the kernel.

use super::chain::Reserved;
use super::group_commit::GroupCommit;
use super::history::Moment;
use super::preallocate::Preallocator;
use super::record::{HEADER_BYTES, Header, Kind};
use super::recovery::{self, RecoveredLog, Recovery};
use super::segment::{SEGMENT_BYTES, Segment, first_record, segment_of};
use crate::disk_room::{DiskRoom, Draw};
use crate::followers::Followers;
use crate::journal::Appended;
use crate::latencies::{Latencies, LatencyCounts};
use crate::sync::thread;
use crate::{Batch, Bell, Lsn, Result, StorageError, make_directory};
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Bytes that may wait in memory before an append writes them itself.
pub(super) const BUFFER_BYTES_MAX: usize = 1 << 20;
/// Where the lower 32 bits of the place begin anew, a second begins too, that they tell records of one second apart.
pub(super) const SEGMENTS_PER_SECOND_MAX: u64 = (1 << 32) / SEGMENT_BYTES;

/// How the log behaves.
#[derive(Clone)]
pub struct LogOptions {
    /// Longest time that a record stays unsynced without anyone asking (`storage.journal.commitIntervalMs`).
    pub commit_interval: Duration,
    /// How much of the log is kept to be read back as a history, in bytes, in whole segments; `None` for what is needed
    /// anyway (`replication.oplogSizeMB`).
    pub history_bytes_max: Option<u64>,
    /// Told once when a write or sync fails; a server stops itself here, since nothing may be acknowledged after.
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
    /// How long each fdatasync of a segment took.
    pub sync_latencies: LatencyCounts,
}

/// The append-only log of one data directory.
pub struct Log {
    pub(super) directory: PathBuf,
    pub(super) tail: Mutex<Tail>,
    /// Held while bytes go to the kernel, so that groups are written in order; keeps a spent buffer for reuse.
    /// Taken before `tail` where both are held.
    pub(super) writing: Mutex<Vec<u8>>,
    /// Everything below is in the kernel.
    pub(super) written: AtomicU64,
    /// Everything below is on disk.
    pub(super) synced: AtomicU64,
    /// By number. Replaced as a whole, once in 64 MB, so that readers share no lock.
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
    followers: Arc<Followers>,
    /// Segments that hold nothing needed, but that a reader may still be reading.
    leaving: Mutex<Vec<Arc<Segment>>>,
    recovery: Recovery,
}

/// Where the next record goes, and what is not yet in the kernel.
pub(super) struct Tail {
    pub(super) next: Lsn,
    /// When the last record was written, never earlier than the one before; see [`crate::Moment`].
    pub(super) time_ms: u64,
    /// Rests of segments that are full.
    pub(super) sealed: Vec<Group>,
    pub(super) current: Group,
    /// The place of the last record of a chain, ahead of `next`.
    pub(super) reserved: Option<Reserved>,
}

/// Bytes that stand in a row in one segment and are not yet in the kernel.
pub(super) struct Group {
    pub(super) segment: Arc<Segment>,
    pub(super) position: u64,
    pub(super) bytes: Vec<u8>,
}

impl Log {
    /// Goes on with a log. No record of it was written after `time_ms`.
    pub(crate) fn start(
        recovered: RecoveredLog,
        options: LogOptions,
        time_ms: u64,
        disk: &Arc<DiskRoom>,
    ) -> Result<Arc<Self>> {
        make_directory(&recovered.directory)?;
        recovered.clear_away()?;
        let RecoveredLog { directory, segments, end, time_ms: last_time_ms, recovery } = recovered;
        let directory = directory.as_path();
        let mut segments: FxHashMap<u64, Arc<Segment>> =
            segments.into_iter().map(|segment| (segment.number, Arc::new(segment))).collect();
        let number = segment_of(end.0);
        let segment = match segments.get(&number) {
            Some(segment) => Arc::clone(segment),
            None => Arc::new(recovery::create_first(directory, number, disk)?),
        };
        segments.insert(number, Arc::clone(&segment));
        // After that: on a nearly full disk the segment that is needed goes before the one that may be.
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
            followers: Arc::default(),
            leaving: Mutex::default(),
            recovery,
        });
        GroupCommit::start(&log, options.commit_interval);
        Ok(log)
    }

    /// Those who follow what is written.
    pub(crate) fn followers(&self) -> &Arc<Followers> {
        &self.followers
    }

    /// Rung whenever more is on disk.
    pub(crate) fn durable(&self) -> &Arc<Bell> {
        &self.durable
    }

    /// What it took to open it.
    pub fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    /// Gives the batch its place. `in_order` is called under the log's lock, in order of LSNs; also for the last record of a
    /// chain, where the batch does not fit in front of the place that is reserved for that.
    ///
    /// # Errors
    /// Before anything is kept: [`StorageError::OutOfDiskSpace`], [`StorageError::RecordTooLarge`],
    /// [`StorageError::LogFailed`].
    pub(crate) fn append(
        &self,
        batch: &Batch<'_>,
        draw: Draw,
        time_ms: u64,
        mut in_order: impl FnMut(Moment),
    ) -> Result<Appended> {
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
        tail.time_ms = tail.time_ms.max(time_ms);
        let header = self.put(&mut tail, batch, effects_checksum, Kind::Batch);
        let is_full = tail.current.bytes.len() >= BUFFER_BYTES_MAX;
        in_order(Moment { lsn: header.lsn, end: tail.next, time_ms: tail.time_ms });
        drop(tail);
        if is_full {
            // The record has its place, and is applied whatever comes of this. Where it fails the log has failed, and
            // whoever acknowledges the record is told.
            let _ = self.write_through(header.lsn);
        }
        Ok(Appended { lsn: header.lsn, documents_position: header.documents_position() })
    }

    /// Puts a record, for which there is room, behind the last one.
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

    /// A group may be half written, a failed sync may have dropped pages: nothing is acknowledged from here on.
    pub(crate) fn fail(&self, error: StorageError) -> StorageError {
        if !self.has_failed.swap(true, Ordering::SeqCst) {
            (self.on_failure)(&error);
        }
        error
    }

    /// Whether a write or sync has failed: the log takes nothing any more.
    pub fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }

    /// Lets no later record be of an earlier moment than `time_ms`.
    pub(crate) fn advance_time(&self, time_ms: u64) {
        let mut tail = self.tail.lock();
        tail.time_ms = tail.time_ms.max(time_ms);
    }

    /// When the last record was written, in milliseconds since 1970; 0 where there has been none.
    pub(crate) fn last_time_ms(&self) -> u64 {
        self.tail.lock().time_ms
    }

    /// Position behind the last record.
    pub fn next_lsn(&self) -> Lsn {
        self.tail.lock().next
    }

    /// No record that engines have applied by now begins there or later, the one with a reserved place included.
    pub fn applied_before(&self) -> Lsn {
        let tail = self.tail.lock();
        tail.reserved.as_ref().map_or(tail.next, Reserved::end)
    }

    /// Gives up segments that hold nothing needed, for reuse once the last reader has left them: a reader that looked
    /// its segment up before must not find another's bytes in the file.
    pub(crate) fn retire(&self, numbers: &[u64]) -> Result<()> {
        let mut leaving = self.leaving.lock();
        if !numbers.is_empty() {
            let gone: Vec<_> = {
                let segments = self.segments.load();
                numbers.iter().filter_map(|number| segments.get(number).cloned()).collect()
            };
            self.segments.rcu(|segments| {
                let mut segments = FxHashMap::clone(segments);
                segments.retain(|number, _| !numbers.contains(number));
                segments
            });
            leaving.extend(gone);
        }
        let mut outcome = Ok(());
        leaving.retain(|segment| {
            let is_read = Arc::strong_count(segment) > 1;
            if !is_read && let Err(error) = self.preallocator.recycle(segment) {
                outcome = Err(error);
            }
            is_read
        });
        outcome
    }

    /// Numbers of the segments that exist, the current one last.
    pub(crate) fn segment_numbers(&self) -> Vec<u64> {
        let mut numbers: Vec<u64> = self.segments.load().keys().copied().collect();
        numbers.sort_unstable();
        numbers
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

    /// Syncs what there is and stops the threads.
    pub(crate) fn close(&self) -> Result<()> {
        let end = self.next_lsn();
        let synced = self.sync_blocking(end);
        self.group_commit.close();
        self.group_commit.join();
        self.stop_preallocating();
        synced
    }

    /// Returns once no segment is being made any more.
    pub(super) fn stop_preallocating(&self) {
        self.preallocator.close();
        if let Some(thread) = self.preallocating.lock().take() {
            let _ = thread.join();
        }
    }
}

/// How long the record of a batch is, in bytes.
pub(super) fn record_length(batch: &Batch<'_>) -> Result<u64> {
    let length_bytes = (HEADER_BYTES + batch.len_bytes()) as u64;
    // A segment must also hold its own header and the seal behind the last record.
    if length_bytes > SEGMENT_BYTES - first_record(0) - HEADER_BYTES as u64 {
        return Err(StorageError::RecordTooLarge { length_bytes });
    }
    Ok(length_bytes)
}

/// Whether a record that stands there is the first one behind the place where the lower 32 bits of places begin anew. A
/// start may find the log to end there: then no record tells that its second began.
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
            Log::start(found, LogOptions::default(), 5500, &DiskRoom::unlimited()).expect("starts")
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
            drop(Log::start(found, LogOptions::default(), 5500, &DiskRoom::unlimited()).expect("starts"));
            let files = std::fs::read_dir(directory.path()).expect("readable");
            let mut names = files.map(|file| file.expect("readable").file_name().to_string_lossy().into_owned());
            assert!(names.all(|name| name.ends_with(".segment")), "one is being made still");
        }
    }

    #[test]
    fn a_record_that_has_its_place_is_not_refused() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let found = recovery::recover(directory.path(), Lsn(0), &mut |_, _| Ok(())).expect("nothing is there");
        let log = Log::start(found, LogOptions::default(), 0, &DiskRoom::unlimited()).expect("starts");
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
