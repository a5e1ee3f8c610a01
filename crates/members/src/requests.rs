//! Requests of administrators, whose answers come as actions.

use bunko_replica::{Refusal, Refused};
use parking_lot::Mutex;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// A kind of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    StepDown,
    Campaign,
    Configuration,
}

/// The outcome of a request.
pub(crate) type Outcome = Result<(), Refusal>;

/// The request that waits; there is one at a time.
#[derive(Default)]
pub(crate) struct Requests(Mutex<Option<(Asked, SyncSender<Outcome>)>>);

impl Requests {
    /// Begins a request. `None` if another one waits.
    pub(crate) fn begin(&self, asked: Asked) -> Option<Receiver<Outcome>> {
        let mut waiting = self.0.lock();
        if waiting.is_some() {
            return None;
        }
        let (sender, receiver) = sync_channel(1);
        *waiting = Some((asked, sender));
        Some(receiver)
    }

    /// Answers the request that waits, if it is of that kind.
    pub(crate) fn answer(&self, asked: Asked, outcome: Outcome) {
        if let Some((_, sender)) = self.0.lock().take_if(|(waiting, _)| *waiting == asked) {
            // The asker may have given up.
            let _ = sender.try_send(outcome);
        }
    }

    pub(crate) fn refuse(&self, refused: Refused) {
        let (asked, refusal) = match refused {
            Refused::StepDown(refusal) => (Asked::StepDown, refusal),
            Refused::Campaign(refusal) => (Asked::Campaign, refusal),
            Refused::Propose(refusal) => (Asked::Configuration, refusal),
        };
        self.answer(asked, Err(refusal));
    }

    /// Ends a request that was not answered in time.
    pub(crate) fn give_up(&self) {
        *self.0.lock() = None;
    }
}
