//! What is read from the log again and again, kept in memory.
//!
//! To read a short document from the log is a call of the system, and where many are sought at a time these calls take longer than all
//! else. So the log is divided into stretches, and one that was read from often is kept whole. A document alone, or a few, are
//! read past this: their requests take so much more than these calls that nothing was gained. What the log holds never changes,
//! so a kept stretch is right for as long as it is there. All of them together have a bound: where it is reached, segments that were
//! not used of late go with all their stretches, and if there are none, nothing more is kept.

use arc_swap::ArcSwap;
use bunko_store::{Location, Log, SEGMENT_BYTES, segment_of};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Size of a stretch: to read it takes about as long as to read four short documents.
const STRETCH_BYTES: u64 = 16 * 1024;
const STRETCHES: usize = (SEGMENT_BYTES / STRETCH_BYTES) as usize;
/// The read from a stretch that has it kept. Of documents that are read once and then replaced, which is what updates do, a stretch
/// holds fewer unless they are short.
const READS_MIN: u8 = 16;
/// Most bytes that are kept, however large the cache is.
pub(crate) const KEPT_BYTES_MAX: u64 = 128 << 20;
/// Where there is not room for so many bytes, nothing is kept: two segments with a stretch each.
const KEPT_BYTES_MIN: u64 = 2 * ((STRETCHES * size_of::<Stretch>()) as u64 + STRETCH_BYTES);

/// For so long at least a segment must not have been used before it makes room for others. Less would have them take turns where
/// all are used and not all can be kept.
const UNUSED_MIN: Duration = Duration::from_secs(1);

/// Stretches of all segments.
pub(crate) struct KeptLog {
    /// Replaced as a whole, so readers take no lock.
    segments: ArcSwap<FxHashMap<u64, Arc<KeptSegment>>>,
    bytes_max: u64,
    bytes: AtomicU64,
    /// Held by whoever changes what is kept; when room was sought last.
    changing: Mutex<Option<Instant>>,
}

/// Stretches of a segment.
pub(crate) struct KeptSegment {
    number: u64,
    stretches: Box<[Stretch]>,
    /// Whether something was read from it since room was sought last.
    is_used: AtomicBool,
}

#[derive(Default)]
struct Stretch {
    /// The log's bytes, once they are kept.
    bytes: OnceLock<Box<[u8]>>,
    /// Reads before that.
    reads: AtomicU8,
}

impl KeptSegment {
    fn new(number: u64) -> Self {
        let stretches = std::iter::repeat_with(Stretch::default).take(STRETCHES).collect();
        Self { number, stretches, is_used: AtomicBool::new(true) }
    }

    /// What it takes in memory.
    fn bytes(&self) -> u64 {
        let kept = self.stretches.iter().filter(|stretch| stretch.bytes.get().is_some()).count();
        size_of_val(&*self.stretches) as u64 + kept as u64 * STRETCH_BYTES
    }

    /// The bytes at a location, which the caller verifies; `None` where they are not kept.
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
        // Whoever reads from it last gives back what was taken for all.
        let _uncounted = bunko_heap::Uncounted::begin();
        self.stretches = Box::default();
    }
}

/// The stretch of its segment that a position falls into, and where in it.
fn place(position: u64) -> (usize, usize) {
    let in_segment = position % SEGMENT_BYTES;
    ((in_segment / STRETCH_BYTES) as usize, (in_segment % STRETCH_BYTES) as usize)
}

impl KeptLog {
    /// Keeps nothing yet, and never more than so many bytes.
    pub fn new(bytes_max: u64) -> Self {
        let bytes_max = if bytes_max < KEPT_BYTES_MIN { 0 } else { bytes_max };
        Self { segments: ArcSwap::default(), bytes_max, bytes: AtomicU64::new(0), changing: Mutex::default() }
    }

    /// Bytes of memory that are taken.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// What is kept of the segment of a location, for one who reads from it.
    pub fn segment(&self, location: Location) -> Option<Arc<KeptSegment>> {
        let segment = self.segments.load().get(&segment_of(location.position)).cloned()?;
        // Written only where it changes something: all who read share it.
        if !segment.is_used.load(Ordering::Relaxed) {
            segment.is_used.store(true, Ordering::Relaxed);
        }
        Some(segment)
    }

    /// Learns that the log was read for a document. It is no error where its stretch cannot be kept.
    pub fn was_read(&self, log: &Log, location: Location) {
        let (stretch, start) = place(location.position);
        if self.bytes_max == 0 || start as u64 + u64::from(location.length) > STRETCH_BYTES {
            return;
        }
        let number = segment_of(location.position);
        let segment = self.segments.load().get(&number).cloned();
        let Some(segment) = segment.or_else(|| self.begin(number)) else { return };
        let reads = &segment.stretches[stretch].reads;
        let count = reads.load(Ordering::Relaxed).saturating_add(1);
        // Of two readers at the same time one may not be counted, which does no harm.
        reads.store(count, Ordering::Relaxed);
        if count >= READS_MIN {
            self.keep(log, &segment, stretch);
        }
    }

    /// Begins to count what is read from a segment; not while another one changes what is kept.
    fn begin(&self, number: u64) -> Option<Arc<KeptSegment>> {
        let mut changing = self.changing.try_lock()?;
        if let Some(begun) = self.segments.load().get(&number) {
            return Some(Arc::clone(begun));
        }
        let _uncounted = bunko_heap::Uncounted::begin();
        let segment = Arc::new(KeptSegment::new(number));
        let bytes = segment.bytes();
        if !self.make_room(&mut changing, bytes) {
            return None;
        }
        self.replace(|segments| {
            segments.insert(number, Arc::clone(&segment));
        });
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        Some(segment)
    }

    /// Reads a stretch that is all written, and keeps it.
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
        // Whatever comes of it, the next attempt is as many reads away.
        place.reads.store(0, Ordering::Relaxed);
        // It is kept for all who come after.
        let _uncounted = bunko_heap::Uncounted::begin();
        // The segment itself may have gone, also to make room.
        if !self.make_room(&mut changing, STRETCH_BYTES) || !self.has(segment) {
            return;
        }
        let mut bytes = vec![0; STRETCH_BYTES as usize].into_boxed_slice();
        if log.read_raw(start, &mut bytes).is_ok() && place.bytes.set(bytes).is_ok() {
            self.bytes.fetch_add(STRETCH_BYTES, Ordering::Relaxed);
        }
    }

    /// Whether a segment is still one that readers come to.
    fn has(&self, segment: &KeptSegment) -> bool {
        self.segments.load().get(&segment.number).is_some_and(|there| std::ptr::eq(Arc::as_ptr(there), segment))
    }

    /// Lets segments go that were not used of late, where so many bytes more are beyond the bound; whether they are within it then.
    fn make_room(&self, sought: &mut Option<Instant>, bytes: u64) -> bool {
        let is_room = || self.bytes() + bytes <= self.bytes_max;
        if is_room() || sought.is_some_and(|sought| sought.elapsed() < UNUSED_MIN) {
            return is_room();
        }
        *sought = Some(Instant::now());
        self.forget(|segment| segment.is_used.swap(false, Ordering::Relaxed));
        is_room()
    }

    /// Lets all segments go but these.
    pub fn retain(&self, is_kept: impl Fn(u64) -> bool) {
        let _changing = self.changing.lock();
        if self.segments.load().keys().any(|number| !is_kept(*number)) {
            self.forget(|segment| is_kept(segment.number));
        }
    }

    /// The same, while nobody else changes what is kept.
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
