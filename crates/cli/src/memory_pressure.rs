//! Memory that the process really holds.
//!
//! Memory that grows with a client's requests is counted before it is allocated. Some may be overlooked, and the
//! allocator keeps freed memory. So a thread measures the memory of the process. Memory beyond the share of caches and
//! program counts as held by clients, whether a command holds it or the allocator keeps it. While the process is near
//! its limit, the budget counts as full: large messages wait, batches are short, and commands that hold much memory
//! fail.

use bunko_operation::{Purpose, ServerMemory};
use std::sync::Arc;

/// Percentages of the usable memory. From the first on, freed memory is returned soon; from the second on, no new
/// message is read; from the third on, no command may hold much.
const SCARCE_PERCENT: u64 = 70;
const FULL_PERCENT: u64 = 90;
const TOO_MUCH_PERCENT: u64 = 95;
/// The part (1/n) of the clients' budget that no process memory may take. The budget leaves a third of its size for
/// fragments and freed memory, and this is half of that third. The kernel needs some memory for the process too.
const MARGIN_PART: u64 = 6;

/// How close the process is to its memory limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pressure {
    None,
    /// Freed memory is returned soon.
    Scarce,
    /// No large operation may begin.
    Full,
    /// Large operations must end.
    TooMuch,
}

/// Reports the memory of the process to the budget.
pub(crate) struct PressureGauge {
    memory: Arc<ServerMemory>,
    usable: u64,
    told: i64,
}

impl PressureGauge {
    /// A gauge for a process that may use `usable` bytes.
    pub fn new(memory: &Arc<ServerMemory>, usable: u64) -> Self {
        Self { memory: Arc::clone(memory), usable, told: 0 }
    }

    /// Whether the process has so much memory that it must be measured often.
    pub fn is_near(&self, taken: u64) -> bool {
        taken > self.usable / 2
    }

    /// Reports the memory of the process, without memory that the system can reclaim by itself. `pinned` is the part of
    /// it that engines hold as long as their files exist: it grows with the clients' indexes, so the budget pays for
    /// it, up to a half.
    pub fn note(&mut self, taken: u64, pinned: u64) -> Pressure {
        let part = self.usable / 100;
        let clients = self.memory.bytes_max() + self.memory.bytes_max() / MARGIN_PART;
        let beyond_others = taken.saturating_sub(self.usable.saturating_sub(clients));
        let pressure = match taken / part.max(1) {
            percent if percent >= TOO_MUCH_PERCENT => Pressure::TooMuch,
            percent if percent >= FULL_PERCENT => Pressure::Full,
            percent if percent >= SCARCE_PERCENT || beyond_others > 0 => Pressure::Scarce,
            _ => Pressure::None,
        };
        let fills_to = match pressure {
            Pressure::None | Pressure::Scarce => beyond_others.min(self.memory.bytes_max()),
            Pressure::Full => beyond_others.clamp(self.memory.limit(Purpose::Message), self.memory.bytes_max()),
            Pressure::TooMuch => self.memory.bytes_max(),
        };
        let known = self.memory.held() as i64 - self.told;
        let tells = (fills_to as i64 - known).max(pinned.min(self.memory.bytes_max() / 2) as i64);
        self.memory.tell(tells - self.told);
        self.told = tells;
        pressure
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_is_full_while_the_process_has_too_much() {
        let memory = ServerMemory::new(1600);
        let mut gauge = PressureGauge::new(&memory, 10_000);
        let held = memory.draw(300, Purpose::Work);
        assert_eq!((gauge.note(8999, 0), memory.held()), (Pressure::Scarce, 865));
        assert_eq!((gauge.note(9000, 0), memory.held()), (Pressure::Full, 1200));
        assert!(memory.draw(1, Purpose::Message).is_none() && memory.is_short());
        assert_eq!((gauge.note(9500, 0), memory.held()), (Pressure::TooMuch, 1600));
        drop(held);
        assert_eq!((gauge.note(9500, 0), memory.held()), (Pressure::TooMuch, 1600));
        assert_eq!((gauge.note(5001, 0), memory.held()), (Pressure::None, 0));
        assert!(gauge.is_near(5001) && !gauge.is_near(5000));
    }

    #[test]
    fn pinned_memory_counts_as_held() {
        let memory = ServerMemory::new(4800);
        let mut gauge = PressureGauge::new(&memory, 10_000);
        let held = memory.draw(400, Purpose::Work);
        assert_eq!((gauge.note(3000, 700), memory.held()), (Pressure::None, 1100));
        assert_eq!((gauge.note(3000, 9000), memory.held()), (Pressure::None, 2800), "at most half of the budget");
        assert_eq!((gauge.note(3000, 0), memory.held()), (Pressure::None, 400));
        drop(held);
    }

    #[test]
    fn memory_beyond_the_share_of_caches_counts_as_held() {
        let memory = ServerMemory::new(4800);
        let mut gauge = PressureGauge::new(&memory, 10_000);
        assert_eq!((gauge.note(4400, 0), memory.held()), (Pressure::None, 0));
        assert_eq!((gauge.note(5400, 0), memory.held()), (Pressure::Scarce, 1000));
        let held = memory.draw(400, Purpose::Work);
        assert_eq!((gauge.note(5400, 0), memory.held()), (Pressure::Scarce, 1000), "the command's are among them");
        drop(held);
        assert_eq!((gauge.note(4400, 0), memory.held()), (Pressure::None, 0));
    }
}
