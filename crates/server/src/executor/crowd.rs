//! Requests beside long commands.

use bunko_host::{Crowding, usable_processors};
use bunko_store::busy_threads;

/// For so many looks after the last request another one is awaited.
const LOOKS: u32 = 5;
/// For so many looks after processors were last crowded, they are taken to be so: one long command often follows another.
const LOOKS_AFTER: u32 = 50;

/// Has threads that work for long rest every now and then, while those have all processors but one and requests come beside
/// them.
#[derive(Default)]
pub(super) struct Crowd {
    signs: Signs,
    crowding: Option<Crowding>,
    /// Since processors were crowded.
    looks: u32,
}

impl Crowd {
    /// Looks at how many long commands run and how many have begun so far, and how often requests were served so far.
    pub fn look(&mut self, (running, begun): (usize, u64), served: u64) {
        // Asked each time: they may be others by now. One that nobody uses is not enough: the kernel does not always have
        // who wakes run there.
        let is_crowded =
            self.signs.say_so((running, begun), served) && running + busy_threads() + 1 >= usable_processors().len();
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

/// What was seen at earlier looks.
#[derive(Default)]
struct Signs {
    begun: u64,
    served: u64,
    /// Since the last request.
    looks: u32,
}

impl Signs {
    /// Whether requests come beside a long command that ran at the last look already: what is over soon keeps nobody waiting.
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
