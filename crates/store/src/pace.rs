//! Work in the background, in slices.
//!
//! A thread that only works keeps its processor until the kernel's next tick, 4 ms later where that comes 250 times a
//! second; a client's request that waits behind it waits as long, and the requests that pile up meanwhile take several
//! times that to be worked off. On a busy machine it also counts how much of a processor the work takes beside them.

use std::time::{Duration, Instant};

/// Longest stretch of work.
const SLICE: Duration = Duration::from_micros(300);

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
}

impl Pace {
    /// Begins a slice.
    pub fn begin() -> Self {
        Self { rested: Instant::now() }
    }

    /// Called between small steps, with no lock held: rests once a slice is over, as long as the haste allows.
    pub fn step(&mut self, haste: impl FnOnce() -> Haste) {
        if self.rested.elapsed() >= SLICE {
            if let Some(rest) = haste().rest() {
                std::thread::sleep(rest);
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
        let mut pace = Pace { rested: began };
        let hurried = Instant::now();
        pace.step(|| Haste::Hurry);
        assert!(pace.rested >= hurried, "the next slice begins there");
        pace.step(|| panic!("asked within a slice"));
    }
}
