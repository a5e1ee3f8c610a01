//! Work in the background, in slices.
//!
//! A thread that only works keeps its processor until the kernel's next tick, 4 ms later where that comes 250 times a
//! second; a client's request that waits behind it waits as long, and the requests that pile up meanwhile take several
//! times that to be worked off.

use std::time::{Duration, Instant};

/// Longest stretch of work.
const SLICE: Duration = Duration::from_micros(300);
/// The pause behind it.
const REST: Duration = Duration::from_micros(600);

/// When a thread in the background last rested.
#[derive(Debug)]
pub struct Pace {
    rested: Instant,
}

impl Pace {
    /// Begins a slice.
    pub fn begin() -> Self {
        Self { rested: Instant::now() }
    }

    /// Called between small steps, with no lock held: rests once a slice is over, unless there is a hurry.
    pub fn step(&mut self, is_hurried: impl FnOnce() -> bool) {
        if self.rested.elapsed() >= SLICE {
            if !is_hurried() {
                std::thread::sleep(REST);
            }
            self.rested = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_rests_behind_each_slice_but_not_in_a_hurry() {
        let began = Instant::now();
        let (mut slices, mut pace) = (0, Pace::begin());
        while slices < 5 {
            pace.step(|| {
                slices += 1;
                false
            });
        }
        assert!(began.elapsed() >= 5 * (SLICE + REST));
        let mut pace = Pace { rested: began };
        let hurried = Instant::now();
        pace.step(|| true);
        assert!(pace.rested >= hurried, "the next slice begins there");
        pace.step(|| panic!("asked within a slice"));
    }
}
