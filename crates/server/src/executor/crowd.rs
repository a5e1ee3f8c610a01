//! Requests beside long commands.

use bunko_host::Rescheduling;

/// Threads of the storage that may work beside long commands: one flushes, one merges.
const STORAGE_THREADS: usize = 2;
/// For so many looks after the last request another one is awaited.
const LOOKS: u32 = 5;

/// Has the kernel look often who is next, while long commands may have all processors and requests come beside them.
#[derive(Default)]
pub(super) struct Crowd {
    rescheduling: Rescheduling,
    signs: Signs,
}

impl Crowd {
    /// Looks at how many long commands run, and how often requests were served so far.
    pub fn look(&mut self, running: usize, served: u64) {
        let is_crowded = running > 0 && running + STORAGE_THREADS >= self.rescheduling.processors();
        self.rescheduling.want(self.signs.say_so(is_crowded, served));
    }
}

/// What was seen at earlier looks.
#[derive(Default)]
struct Signs {
    was_crowded: bool,
    served: u64,
    /// Since the last request.
    looks: u32,
}

impl Signs {
    /// Whether requests have to wait. What is over at the next look keeps nobody waiting.
    fn say_so(&mut self, is_crowded: bool, served: u64) -> bool {
        self.looks = if served == self.served { self.looks.saturating_add(1) } else { 0 };
        self.served = served;
        std::mem::replace(&mut self.was_crowded, is_crowded) && is_crowded && self.looks < LOOKS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_takes_two_looks_and_requests() {
        let mut signs = Signs::default();
        assert!(!signs.say_so(true, 1), "it may be over soon");
        assert!(signs.say_so(true, 1));
        assert!(!signs.say_so(false, 2));
        assert!(!signs.say_so(true, 3));
        for _ in 0..LOOKS {
            assert!(signs.say_so(true, 4));
        }
        assert!(!signs.say_so(true, 4), "nobody has come for a while");
        assert!(signs.say_so(true, 5));
    }
}
