//! Writers that outrun the engines' flushes. Memory is finite, so they are slowed down to its pace.

use crate::Store;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How many times its limit what engines hold in memory may reach before writers are held back.
const STALL_FACTOR: u64 = 4;
/// And before they are held back wherever they work.
const FAR_STALL_FACTOR: u64 = 2 * STALL_FACTOR;
/// And before background work is held back, so that it never makes writers wait.
const LEISURE_FACTOR: u64 = STALL_FACTOR / 2;
/// What engines may hold in memory in any case when a chain begins.
const CHAIN_LEISURE_BYTES_MIN: u64 = 8 << 20;
/// How long a write is then held back at a time, and how many times at most.
pub const STALL: Duration = Duration::from_millis(1);
/// See [`STALL`].
pub const STALLS_MAX: usize = 250;

/// How far the engines' flushes are behind the writers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lag {
    /// They keep up.
    None,
    /// Whoever wrote should wait before he writes more, somewhere where he holds up nobody else.
    Behind,
    /// He should wait wherever he is.
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

    /// Bytes that engines hold in memory for data on disk, for as long as that data is there.
    pub fn pinned_bytes(&self) -> u64 {
        self.engines.sum(|engine| engine.pinned_bytes())
    }

    /// Bytes that engines hold in memory and have not written.
    fn unwritten_bytes(&self) -> u64 {
        self.engines.sum(|engine| engine.unflushed_bytes() + engine.flushing_bytes())
    }

    /// Whether engines hold so little that a chain may begin.
    pub(crate) fn keeps_up_with_chains(&self) -> bool {
        let leisure_bytes = self.options.unflushed_bytes_max.saturating_mul(LEISURE_FACTOR);
        self.unwritten_bytes() <= leisure_bytes.max(CHAIN_LEISURE_BYTES_MIN)
    }

    /// Waits until engines are far from holding writers back, as [`Store::catch_up`] does. For work in the background.
    pub fn wait_for_leisure(&self) {
        for _ in 0..STALLS_MAX {
            if self.unwritten_bytes() <= LEISURE_FACTOR * self.options.unflushed_bytes_max {
                break;
            }
            std::thread::sleep(STALL);
        }
    }

    /// Has no chain wait for engines any longer: the store will be closed soon.
    pub fn end_waiting(&self) {
        self.is_closing.store(true, Ordering::Relaxed);
    }

    /// Counts a write that is held back.
    pub fn note_stall(&self) {
        self.stalled_writes.fetch_add(1, Ordering::Relaxed);
    }

    /// Waits until the engines keep up. Nobody waits here who keeps a checkpoint from beginning, and nobody for ever: the
    /// flush may fail, on a full disk for one.
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
