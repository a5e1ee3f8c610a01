//! Slows down writers that outrun the engines' flushes, because memory is finite.

use crate::Store;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Writers are held back when engines hold more than this many times their limit in memory.
const STALL_FACTOR: u64 = 4;
/// As [`STALL_FACTOR`], for writers at any point of their work, even where they hold up other threads.
const FAR_STALL_FACTOR: u64 = 2 * STALL_FACTOR;
/// As [`STALL_FACTOR`], for holding background work back, so that it never makes writers wait.
const LEISURE_FACTOR: u64 = STALL_FACTOR / 2;
/// A chain may begin if engines hold no more bytes than this in memory, however low their limit is.
const LEISURE_BYTES_MIN: u64 = 8 << 20;
/// How long a write is held back at a time; [`STALLS_MAX`] is the maximum number of times.
pub const STALL: Duration = Duration::from_millis(1);
/// Maximum number of times that a write is held back for [`STALL`].
pub const STALLS_MAX: usize = 250;

/// How far the engines' flushes are behind the writers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lag {
    /// The flushes keep up.
    None,
    /// The writer should wait before its next write, at a point where it holds up no other thread.
    Behind,
    /// The writer should wait at once, even if other threads wait for it.
    FarBehind,
}

impl Store {
    /// How far the engines are behind.
    pub fn lag(&self) -> Lag {
        let limit_bytes = self.options.unflushed_bytes_max;
        if self.unflushed_bytes() <= limit_bytes {
            return Lag::None;
        }
        match self.unwritten_bytes() {
            bytes if bytes <= STALL_FACTOR * limit_bytes => Lag::None,
            bytes if bytes <= FAR_STALL_FACTOR * limit_bytes => Lag::Behind,
            _ => Lag::FarBehind,
        }
    }

    /// Bytes that engines hold in memory for files on disk, as long as the files exist.
    pub fn pinned_bytes(&self) -> u64 {
        self.engines.sum(|engine| engine.pinned_bytes())
    }

    /// Bytes that engines hold in memory and have not written.
    fn unwritten_bytes(&self) -> u64 {
        self.engines.sum(|engine| engine.unflushed_bytes() + engine.flushing_bytes())
    }

    /// Whether engines are far from holding writers back.
    pub(crate) fn is_at_leisure(&self) -> bool {
        let leisure_bytes = self.options.unflushed_bytes_max.saturating_mul(LEISURE_FACTOR);
        self.unwritten_bytes() <= leisure_bytes.max(LEISURE_BYTES_MIN)
    }

    /// For background work: waits until engines are far from holding writers back, at most as long as
    /// [`Store::catch_up`].
    pub fn wait_for_leisure(&self) {
        for _ in 0..STALLS_MAX {
            if self.is_at_leisure() {
                break;
            }
            std::thread::sleep(STALL);
        }
    }

    /// Stops chains from waiting for engines, because the store will be closed soon.
    pub fn end_waiting(&self) {
        self.is_closing.store(true, Ordering::Relaxed);
    }

    /// Counts a write that is held back.
    pub fn note_stall(&self) {
        self.stalled_writes.fetch_add(1, Ordering::Relaxed);
    }

    /// Waits until the engines keep up, for [`STALLS_MAX`] times [`STALL`] at most, because the flush may fail, for
    /// example on a full disk. The caller must not keep a checkpoint from beginning.
    pub fn catch_up(&self) {
        self.note_stall();
        for _ in 0..STALLS_MAX {
            std::thread::sleep(STALL);
            if self.lag() == Lag::None {
                break;
            }
        }
    }
}
