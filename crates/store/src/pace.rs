//! Work in the background, in slices.
//!
//! A thread that only works keeps its processor until the kernel's next tick, 4 ms later where that comes 250 times a
//! second; a client's request that waits behind it waits as long, and the requests that pile up meanwhile take several
//! times that to be worked off. On a busy machine it also counts how much of a processor the work takes beside them.

use bunko_host::rest_in_crowds;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Longest stretch of work.
const SLICE: Duration = Duration::from_micros(300);
/// The same while short requests wait for processors.
const SLICE_IN_CROWDS: Duration = Duration::from_micros(100);

/// Threads in the background that have no time to lose, in all stores of this process.
static BUSY: AtomicUsize = AtomicUsize::new(0);

/// How many threads in the background want a third of a processor or more, in all stores of this process.
pub fn busy_threads() -> usize {
    BUSY.load(Ordering::Relaxed)
}

/// How soon the work has to be over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Haste {
    /// There is time enough: a tenth of a processor will do.
    Leisure,
    /// A third of a processor.
    Usual,
    /// As fast as it can be done.
    Hurry,
}

impl Haste {
    /// The pause behind a slice.
    fn rest(self) -> Option<Duration> {
        match self {
            Self::Leisure => Some(9 * SLICE),
            Self::Usual => Some(2 * SLICE),
            Self::Hurry => None,
        }
    }
}

/// When a thread in the background last rested.
#[derive(Debug)]
pub struct Pace {
    rested: Instant,
    /// Whether it counts among [`busy_threads`].
    is_busy: bool,
}

impl Pace {
    /// Begins a slice.
    pub fn begin() -> Self {
        Self { rested: Instant::now(), is_busy: false }
    }

    /// Called between small steps, with no lock held: rests once a slice is over, as long as the haste allows, and more
    /// often where short requests wait for processors.
    pub fn step(&mut self, haste: impl FnOnce() -> Haste) {
        rest_in_crowds(SLICE_IN_CROWDS);
        if self.rested.elapsed() >= SLICE {
            let haste = haste();
            self.be_busy(haste != Haste::Leisure);
            if let Some(rest) = haste.rest() {
                std::thread::sleep(rest);
            }
            self.rested = Instant::now();
        }
    }

    fn be_busy(&mut self, is_busy: bool) {
        match (std::mem::replace(&mut self.is_busy, is_busy), is_busy) {
            (false, true) => BUSY.fetch_add(1, Ordering::Relaxed),
            (true, false) => BUSY.fetch_sub(1, Ordering::Relaxed),
            _ => return,
        };
    }
}

impl Drop for Pace {
    fn drop(&mut self) {
        self.be_busy(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_rests_behind_each_slice_but_not_in_a_hurry() {
        for (haste, part) in [(Haste::Usual, 3), (Haste::Leisure, 10)] {
            let began = Instant::now();
            let (mut slices, mut pace) = (0, Pace::begin());
            while slices < 5 {
                pace.step(|| {
                    slices += 1;
                    haste
                });
            }
            assert!(began.elapsed() >= 5 * part * SLICE, "{haste:?}");
        }
        let began = Instant::now().checked_sub(SLICE).expect("the clock has run that long");
        let mut pace = Pace { rested: began, is_busy: false };
        let hurried = Instant::now();
        pace.step(|| Haste::Hurry);
        assert!(pace.rested >= hurried, "the next slice begins there");
        pace.step(|| panic!("asked within a slice"));
    }

    #[test]
    fn it_rests_more_often_in_crowds() {
        let hurried = |pace: &mut Pace| {
            let began = Instant::now();
            pace.step(|| Haste::Hurry);
            began.elapsed()
        };
        let mut pace = Pace::begin();
        let crowding = bunko_host::Crowding::begin();
        hurried(&mut pace);
        std::thread::sleep(SLICE_IN_CROWDS);
        assert!(hurried(&mut pace) >= SLICE_IN_CROWDS);
        drop(crowding);
    }

    #[test]
    fn threads_that_have_no_time_to_lose_are_counted() {
        let long_ago = Instant::now().checked_sub(SLICE).expect("the clock has run that long");
        let step = |haste| {
            let mut pace = Pace { rested: long_ago, is_busy: false };
            pace.step(|| haste);
            pace
        };
        // Other tests count their own.
        let hurried: Vec<_> = (0..100).map(|_| step(Haste::Hurry)).collect();
        assert!(busy_threads() >= 100);
        assert!(hurried.iter().all(|pace| pace.is_busy) && !step(Haste::Leisure).is_busy && step(Haste::Usual).is_busy);
        drop(hurried);
        assert!(busy_threads() < 100);
    }
}
