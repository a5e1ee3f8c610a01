//! Background work in slices, with rests in between.
//!
//! A thread that works without a rest keeps its processor until the kernel's next tick, which is 4 ms later at 250
//! ticks a second. A client's request behind it waits that long, and the requests that pile up meanwhile take several
//! times as long to be served. On a busy machine, the processor time that the work takes away from requests matters
//! too.

use bunko_host::rest_in_crowds;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Longest stretch of work without a rest.
const SLICE: Duration = Duration::from_micros(300);
/// As [`SLICE`], while short requests wait for processors.
const SLICE_IN_CROWDS: Duration = Duration::from_micros(100);

/// Number of background threads in this process whose urgency is above [`Urgency::Leisure`].
static BUSY: AtomicUsize = AtomicUsize::new(0);

/// Number of background threads, in all stores of this process, that want a third of a processor or more.
pub fn busy_threads() -> usize {
    BUSY.load(Ordering::Relaxed)
}

/// How soon the work has to be finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// There is time enough: the work takes a tenth of a processor.
    Leisure,
    /// The work takes a third of a processor.
    Usual,
    /// As fast as possible beside short requests that wait for processors. If the work falls behind because of them,
    /// writers wait for it.
    Hurry,
    /// As fast as possible: a client waits for the work, or no writer would ever wait for it, however far it fell
    /// behind.
    AtOnce,
}

impl Urgency {
    /// Length of the rest after a slice; `None` for no rest.
    fn rest(self) -> Option<Duration> {
        match self {
            Self::Leisure => Some(9 * SLICE),
            Self::Usual => Some(2 * SLICE),
            Self::Hurry | Self::AtOnce => None,
        }
    }
}

/// When a background thread last rested.
#[derive(Debug)]
pub struct Pace {
    rested: Instant,
    /// The urgency at the last check. Unless it is [`Urgency::Leisure`], the thread counts among [`busy_threads`].
    urgency: Urgency,
}

impl Pace {
    /// Begins a slice.
    pub fn begin() -> Self {
        Self { rested: Instant::now(), urgency: Urgency::Leisure }
    }

    /// Must be called between small steps, with no lock held. Rests once a slice is over, for as long as the urgency
    /// allows, and more often while short requests wait for processors.
    pub fn step(&mut self, urgency: impl FnOnce() -> Urgency) {
        if self.urgency != Urgency::AtOnce {
            rest_in_crowds(SLICE_IN_CROWDS);
        }
        if self.rested.elapsed() >= SLICE {
            let urgency = urgency();
            self.note(urgency);
            if let Some(rest) = urgency.rest() {
                std::thread::sleep(rest);
            }
            self.rested = Instant::now();
        }
    }

    fn note(&mut self, urgency: Urgency) {
        let was_busy = std::mem::replace(&mut self.urgency, urgency) != Urgency::Leisure;
        match (was_busy, urgency != Urgency::Leisure) {
            (false, true) => BUSY.fetch_add(1, Ordering::Relaxed),
            (true, false) => BUSY.fetch_sub(1, Ordering::Relaxed),
            _ => return,
        };
    }
}

impl Drop for Pace {
    fn drop(&mut self) {
        self.note(Urgency::Leisure);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_testkit::sleeps::sleeps;

    #[test]
    fn it_rests_behind_each_slice_but_not_in_a_hurry() {
        for (urgency, part) in [(Urgency::Usual, 3), (Urgency::Leisure, 10)] {
            let began = Instant::now();
            let (mut slices, mut pace) = (0, Pace::begin());
            while slices < 5 {
                pace.step(|| {
                    slices += 1;
                    urgency
                });
            }
            assert!(began.elapsed() >= 5 * part * SLICE, "{urgency:?}");
        }
        let began = Instant::now().checked_sub(SLICE).expect("the clock has run that long");
        let mut pace = Pace { rested: began, urgency: Urgency::Leisure };
        let hurried = Instant::now();
        pace.step(|| Urgency::Hurry);
        assert!(pace.rested >= hurried, "the next slice begins there");
        pace.rested = hurried + Duration::from_mins(1);
        pace.step(|| panic!("asked within a slice"));
    }

    /// How often a thread of that urgency rests for waiting requests, in steps of one slice each.
    fn rests_in_crowds(urgency: Urgency) -> usize {
        let mut pace = Pace::begin();
        let crowding = bunko_host::Crowding::begin();
        // The first two steps begin a slice and ask for the urgency.
        let rests = (0..12).filter(|step| {
            std::thread::sleep(SLICE);
            pace.rested = Instant::now().checked_sub(SLICE).expect("the clock has run that long");
            let slept = sleeps();
            pace.step(|| urgency);
            *step >= 2 && sleeps() > slept
        });
        let count = rests.count();
        drop(crowding);
        count
    }

    #[test]
    fn all_but_the_most_urgent_rests_more_often_in_crowds() {
        assert_eq!([Urgency::Hurry, Urgency::AtOnce].map(rests_in_crowds), [10, 0]);
    }

    #[test]
    fn threads_that_have_no_time_to_lose_are_counted() {
        let long_ago = Instant::now().checked_sub(SLICE).expect("the clock has run that long");
        let step = |urgency| {
            let mut pace = Pace { rested: long_ago, urgency: Urgency::Leisure };
            pace.step(|| urgency);
            pace
        };
        // Other tests add their own threads to the count.
        let busy = [Urgency::Usual, Urgency::Hurry, Urgency::AtOnce];
        let paces: Vec<_> = (0..100).flat_map(|_| busy.map(step)).collect();
        let leisurely: Vec<_> = (0..300).map(|_| step(Urgency::Leisure)).collect();
        assert!((300..600).contains(&busy_threads()));
        drop((paces, leisurely));
        assert!(busy_threads() < 300);
    }
}
