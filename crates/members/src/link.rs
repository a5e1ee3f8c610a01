//! The way to one other member: the messages that wait for its thread, and the facts that the thread has heard.

use crate::outbox::Outbox;
use crate::peers::Heard;
use bunko_replica::{MemberId, Message};
use parking_lot::{Condvar, Mutex};
use std::time::Duration;

/// Interval at which a member that has no other message asks for the other member's state.
const PING_INTERVAL: Duration = Duration::from_millis(500);
/// The pause before a member that could not be reached is tried again.
pub(crate) const PAUSE: Duration = Duration::from_millis(100);

/// The way to one other member.
pub(crate) struct Link {
    pub(crate) peer: MemberId,
    /// `host:port`, as in the configuration.
    pub(crate) host: String,
    pub(crate) heard: Heard,
    state: Mutex<State>,
    news: Condvar,
}

/// A step of a link's thread.
pub(crate) enum Step {
    Send(Message),
    /// There was no message for the ping interval.
    Ping,
    End,
}

#[derive(Default)]
struct State {
    outbox: Outbox,
    is_over: bool,
}

impl Link {
    pub(crate) fn new(peer: MemberId, host: String) -> Self {
        Self { peer, host, heard: Heard::new(peer), state: Mutex::default(), news: Condvar::new() }
    }

    /// Leaves a message for the thread.
    pub(crate) fn post(&self, message: Message) {
        self.state.lock().outbox.put(message);
        self.news.notify_one();
    }

    /// A message that brings no bytes of the log, if one waits.
    pub(crate) fn take_without_bytes(&self) -> Option<Message> {
        self.state.lock().outbox.take_without_bytes()
    }

    /// Ends the thread.
    pub(crate) fn end(&self) {
        self.state.lock().is_over = true;
        self.news.notify_one();
    }

    /// Waits for the next step of the thread. Its last messages, which may hand over to a successor, are sent before it
    /// ends.
    pub(crate) fn next(&self) -> Step {
        let mut state = self.state.lock();
        loop {
            if let Some(message) = state.outbox.take() {
                return Step::Send(message);
            }
            if state.is_over {
                return Step::End;
            }
            if self.news.wait_for(&mut state, PING_INTERVAL).timed_out() && !state.is_over {
                return state.outbox.take().map_or(Step::Ping, Step::Send);
            }
        }
    }

    /// Waits before the next attempt. Returns whether the thread must end.
    pub(crate) fn pause(&self, pause: Duration) -> bool {
        let mut state = self.state.lock();
        // Messages end no pause.
        self.news.wait_while_for(&mut state, |state| !state.is_over, pause);
        state.is_over
    }
}
