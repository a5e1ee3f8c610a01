//! A cache of those parts of the log that are read often.
//!
//! Reading a short document from the log is a system call, and when many documents are read at a time these calls take
//! longer than everything else. So the log is divided into stretches, and a stretch that is read often is kept whole in
//! memory. (Caching single documents gained nothing: requests for one document, or for a few, take far longer than the
//! calls.) The log's bytes never change, so a kept stretch stays valid. The memory is bounded: at the limit, segments
//! that were not used recently are dropped with all their stretches, and if there are none, nothing more is kept.

use arc_swap::ArcSwap;
use bunko_store::{Clock, Location, Log, SEGMENT_BYTES, segment_of};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Size of a stretch. Reading it takes about as long as reading four short documents.
const STRETCH_BYTES: u64 = 16 * 1024;
const STRETCHES: usize = (SEGMENT_BYTES / STRETCH_BYTES) as usize;
/// Number of reads after which a stretch is kept. Updates read a document once and then replace it; a stretch holds
/// fewer documents than this, unless they are short.
const READS_MIN: u8 = 16;
/// Upper bound of the kept bytes, however large the engine's cache is.
pub(crate) const KEPT_BYTES_MAX: u64 = 128 << 20;
/// With a smaller limit nothing is kept, because it must hold two segments with a stretch each.
const KEPT_BYTES_MIN: u64 = 2 * ((STRETCHES * size_of::<Stretch>()) as u64 + STRETCH_BYTES);

/// A segment is dropped only if it has not been used for at least this long. With a shorter time, segments would
/// replace each other in turn when all are in use and do not fit.
const UNUSED_MIN: Duration = Duration::from_secs(1);

/// The kept stretches of all segments.
pub(crate) struct KeptLog {
    /// Replaced as a whole, so that readers take no lock.
    segments: ArcSwap<FxHashMap<u64, Arc<KeptSegment>>>,
    bytes_max: u64,
    bytes: AtomicU64,
    /// Locked while kept data changes; contains the time when room was last made.
    changing: Mutex<Option<Instant>>,
}

/// The kept stretches of one segment.
pub(crate) struct KeptSegment {
    number: u64,
    stretches: Box<[Stretch]>,
    /// Whether a reader has used the segment since room was last made.
    is_used: AtomicBool,
}

#[derive(Default)]
struct Stretch {
    /// The log's bytes, once they are kept.
    bytes: OnceLock<Box<[u8]>>,
    /// Number of reads before that.
    reads: AtomicU8,
}

impl KeptSegment {
    fn new(number: u64) -> Self {
        let stretches = std::iter::repeat_with(Stretch::default).take(STRETCHES).collect();
        Self { number, stretches, is_used: AtomicBool::new(true) }
    }

    /// Bytes that the segment takes in memory.
    fn bytes(&self) -> u64 {
        let kept = self.stretches.iter().filter(|stretch| stretch.bytes.get().is_some()).count();
        size_of_val(&*self.stretches) as u64 + kept as u64 * STRETCH_BYTES
    }

    /// The bytes at a location, which the caller must verify; `None` if they are not kept.
    #[inline]
    pub fn get(&self, location: Location) -> Option<&[u8]> {
        if segment_of(location.position) != self.number {
            return None;
        }
        let (stretch, start) = place(location.position);
        let bytes = self.stretches[stretch].bytes.get()?;
        bytes.get(start..start + location.length as usize)
    }
}

impl Drop for KeptSegment {
    fn drop(&mut self) {
        // The memory did not count for the operation that kept it, so it must not count for the reader that drops it
        // last.
        let _uncounted = bunko_heap::Uncounted::begin();
        self.stretches = Box::default();
    }
}

/// The stretch of its segment that contains a position, and the offset in it.
fn place(position: u64) -> (usize, usize) {
    let in_segment = position % SEGMENT_BYTES;
    ((in_segment / STRETCH_BYTES) as usize, (in_segment % STRETCH_BYTES) as usize)
}

impl KeptLog {
    /// An empty cache of at most this many bytes.
    pub fn new(bytes_max: u64) -> Self {
        let bytes_max = if bytes_max < KEPT_BYTES_MIN { 0 } else { bytes_max };
        Self { segments: ArcSwap::default(), bytes_max, bytes: AtomicU64::new(0), changing: Mutex::default() }
    }

    /// Bytes of memory in use.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The kept part of the segment that contains a location, for a reader; `None` if nothing of the segment is kept.
    /// Marks the segment as used.
    pub fn segment(&self, location: Location) -> Option<Arc<KeptSegment>> {
        let segment = self.segments.load().get(&segment_of(location.position)).cloned()?;
        // Stored only if it changes the value, because all readers share the cache line.
        if !segment.is_used.load(Ordering::Relaxed) {
            segment.is_used.store(true, Ordering::Relaxed);
        }
        Some(segment)
    }

    /// Notes that a document was read from the log, and keeps its stretch if that is read often. A failure to keep the
    /// stretch is ignored.
    pub fn was_read(&self, log: &Log, location: Location) {
        let (stretch, start) = place(location.position);
        if self.bytes_max == 0 || start as u64 + u64::from(location.length) > STRETCH_BYTES {
            return;
        }
        let number = segment_of(location.position);
        let segment = self.segments.load().get(&number).cloned();
        let Some(segment) = segment.or_else(|| self.begin(log, number)) else { return };
        let reads = &segment.stretches[stretch].reads;
        let count = reads.load(Ordering::Relaxed).saturating_add(1);
        // Two concurrent readers may be counted as one, which does no harm.
        reads.store(count, Ordering::Relaxed);
        if count >= READS_MIN {
            self.keep(log, &segment, stretch);
        }
    }

    /// Begins to count the reads from a segment, unless another thread is changing the kept data.
    fn begin(&self, log: &Log, number: u64) -> Option<Arc<KeptSegment>> {
        let mut changing = self.changing.try_lock()?;
        if let Some(begun) = self.segments.load().get(&number) {
            return Some(Arc::clone(begun));
        }
        let _uncounted = bunko_heap::Uncounted::begin();
        let segment = Arc::new(KeptSegment::new(number));
        let bytes = segment.bytes();
        if !self.make_room(&mut changing, bytes, log.clock()) {
            return None;
        }
        self.replace(|segments| {
            segments.insert(number, Arc::clone(&segment));
        });
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        Some(segment)
    }

    /// Reads a stretch and keeps it, if all of it has been written.
    fn keep(&self, log: &Log, segment: &KeptSegment, stretch: usize) {
        let start = segment.number * SEGMENT_BYTES + stretch as u64 * STRETCH_BYTES;
        if log.readable_bytes(start) < STRETCH_BYTES {
            return;
        }
        let Some(mut changing) = self.changing.try_lock() else { return };
        let place = &segment.stretches[stretch];
        if place.bytes.get().is_some() {
            return;
        }
        // Counted from zero again, so that after a failure the next attempt comes after as many reads.
        place.reads.store(0, Ordering::Relaxed);
        // The stretch is kept for later readers, so its memory does not count for the operation.
        let _uncounted = bunko_heap::Uncounted::begin();
        // The segment may have been dropped meanwhile, perhaps to make this room.
        if !self.make_room(&mut changing, STRETCH_BYTES, log.clock()) || !self.has(segment) {
            return;
        }
        let mut bytes = vec![0; STRETCH_BYTES as usize].into_boxed_slice();
        if log.read_raw(start, &mut bytes).is_ok() && place.bytes.set(bytes).is_ok() {
            self.bytes.fetch_add(STRETCH_BYTES, Ordering::Relaxed);
        }
    }

    /// Whether readers can still find the segment.
    fn has(&self, segment: &KeptSegment) -> bool {
        self.segments.load().get(&segment.number).is_some_and(|there| std::ptr::eq(Arc::as_ptr(there), segment))
    }

    /// If this many more bytes would exceed the limit, drops segments that were not used recently. Returns whether
    /// there is room.
    fn make_room(&self, sought: &mut Option<Instant>, bytes: u64, clock: &Clock) -> bool {
        let is_room = || self.bytes() + bytes <= self.bytes_max;
        if is_room() || sought.is_some_and(|sought| clock.since(sought) < UNUSED_MIN) {
            return is_room();
        }
        *sought = Some(clock.now());
        self.forget(|segment| segment.is_used.swap(false, Ordering::Relaxed));
        is_room()
    }

    /// Drops all segments for which `is_kept` is false.
    pub fn retain(&self, is_kept: impl Fn(u64) -> bool) {
        let _changing = self.changing.lock();
        if self.segments.load().keys().any(|number| !is_kept(*number)) {
            self.forget(|segment| is_kept(segment.number));
        }
    }

    /// As [`Self::retain`], for a caller that holds `changing`.
    fn forget(&self, is_kept: impl Fn(&KeptSegment) -> bool) {
        let _uncounted = bunko_heap::Uncounted::begin();
        let mut gone = 0;
        self.replace(|segments| {
            segments.retain(|_, segment| {
                let stays = is_kept(segment);
                gone += if stays { 0 } else { segment.bytes() };
                stays
            });
        });
        self.bytes.fetch_sub(gone, Ordering::Relaxed);
    }

    fn replace(&self, change: impl FnOnce(&mut FxHashMap<u64, Arc<KeptSegment>>)) {
        let mut segments = FxHashMap::clone(&self.segments.load());
        change(&mut segments);
        self.segments.store(Arc::new(segments));
    }
}
