//! Requests that compete with long commands for processors.
//!
//! While they do, each thread of a long command or of background work rests for 0.2 ms after 0.1 ms of work, or after
//! 0.7 ms if its command has changed nothing: in `OperationContext::check`, between changes, and in `Pace::step` of
//! `store`. Many threads do not rest, because their rests would leave no processor free. The thread that moves
//! documents out of full segments stops resting once too many segments are full or a command waits for it
//! (`Urgency::AtOnce` of `store`). Writers do not wait for that thread, so nothing else would bound the log.

use bunko_host::{Crowding, usable_processors};
use bunko_store::busy_threads;

/// Number of looks in a row that see no request, after which none is expected.
const LOOKS: u32 = 5;
/// Number of looks from the last one that sees a crowd to the end of the throttling: one long command often follows
/// another.
const LOOKS_AFTER: u32 = 50;

/// Long-working threads for each processor up to which they rest. A thread that only reads works for an eighth of the
/// time, so more of them take all processors in spite of their rests, and each of their wake-ups delays a request.
const RESTING_PER_PROCESSOR: usize = 8;

/// Makes long-working threads pause now and then, while they occupy all processors but one and requests arrive.
#[derive(Default)]
pub(super) struct Crowd {
    signs: Signs,
    crowding: Option<Crowding>,
    /// Looks since the last crowded one.
    looks: u32,
}

impl Crowd {
    /// Updates the throttling: `running` long commands run now, `begun` have begun so far, and `served` turns have
    /// found events so far.
    pub fn look(&mut self, (running, begun): (usize, u64), served: u64) {
        // The usable processors may change, so they are read each time. One free processor is not enough: the kernel
        // does not always put a woken thread there.
        let is_crowded = self.signs.say_so((running, begun), served)
            && do_rests_help(running + busy_threads(), usable_processors().len());
        self.note(is_crowded);
    }

    fn note(&mut self, is_crowded: bool) {
        if is_crowded {
            self.looks = 0;
            self.crowding.get_or_insert_with(Crowding::begin);
        } else {
            self.looks = self.looks.saturating_add(1);
            self.crowding.take_if(|_| self.looks > LOOKS_AFTER);
        }
    }
}

/// Whether this many long-working threads delay requests, and leave a processor free while they rest.
fn do_rests_help(working: usize, processors: usize) -> bool {
    working + 1 >= processors && working <= processors * RESTING_PER_PROCESSOR
}

/// The state of earlier looks.
#[derive(Default)]
struct Signs {
    begun: u64,
    served: u64,
    /// Number of looks since the last request.
    looks: u32,
}

impl Signs {
    /// Takes a look: whether requests arrive while a long command runs that ran at the last look already. Shorter
    /// commands delay no request.
    fn say_so(&mut self, (running, begun): (usize, u64), served: u64) -> bool {
        self.looks = if served == self.served { self.looks.saturating_add(1) } else { 0 };
        self.served = served;
        let new = begun - std::mem::replace(&mut self.begun, begun);
        running as u64 > new && self.looks < LOOKS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crowd_is_taken_to_go_on_for_a_while() {
        let mut crowd = Crowd::default();
        crowd.note(false);
        assert!(crowd.crowding.is_none());
        for _ in 0..2 {
            crowd.note(true);
            for _ in 0..LOOKS_AFTER {
                crowd.note(false);
                assert!(crowd.crowding.is_some());
            }
        }
        crowd.note(false);
        assert!(crowd.crowding.is_none());
    }

    #[test]
    fn neither_few_threads_rest_nor_many() {
        let resting: Vec<_> = (0..40).filter(|&working| do_rests_help(working, 2)).collect();
        assert_eq!(resting, (1..=16).collect::<Vec<_>>());
    }

    #[test]
    fn it_takes_two_looks_and_requests() {
        let mut signs = Signs::default();
        assert!(!signs.say_so((1, 1), 1), "it may be over soon");
        assert!(signs.say_so((1, 1), 1));
        assert!(!signs.say_so((0, 1), 2));
        assert!(!signs.say_so((1, 2), 3));
        assert!(!signs.say_so((1, 5), 4), "another one");
        assert!(signs.say_so((2, 6), 5), "one of both ran before");
        for _ in 1..LOOKS {
            assert!(signs.say_so((2, 6), 5));
        }
        assert!(!signs.say_so((2, 6), 5), "nobody has come for a while");
        assert!(signs.say_so((2, 6), 6));
    }
}
