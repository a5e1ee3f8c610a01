//! Limits of connections that must log in and have not: on the size of a frame, on the memory of all of them, and on
//! time.

use crate::admission::{Admission, Admitted};
use crate::held_memory::{HeldReply, TooMuch};
use bunko_command::{ClientConnection, Service};
use bunko_wire::MAX_FRAME_BYTES;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Largest frame of a connection that must log in and has not, in bytes, compressed or not. A handshake has a few
/// hundred bytes, and no command allowed before a login is larger.
pub(crate) const FRAME_BYTES_MAX: usize = 16 * 1024;

/// Largest frame that a connection may send now.
pub(crate) fn frame_bytes_max(service: &Service, client: &ClientConnection) -> usize {
    if service.authority.asks_for_login(client) { FRAME_BYTES_MAX } else { MAX_FRAME_BYTES }
}

/// A connection that is not logged in.
pub(crate) struct Newcomer {
    admission: Arc<Admission>,
    /// Bytes of its input that are counted in [`Admission::held`].
    held: usize,
    /// The time by which the first bytes, a frame or a login that has begun must be complete; `None` if nothing has
    /// begun.
    deadline: Option<Instant>,
}

impl Newcomer {
    pub fn new(admitted: &Admitted) -> Self {
        Self { admission: Arc::clone(admitted.admission()), held: 0, deadline: None }
    }

    /// Notes whether the first bytes, a frame or a login has begun and is not complete.
    pub fn note(&mut self, is_at_something: bool) {
        self.deadline = match self.deadline {
            _ if !is_at_something => None,
            None => Some((self.admission.clock().now() + self.patience()).into()),
            begun => begun,
        };
    }

    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Time limit of the first bytes, of a frame and of a login.
    pub fn patience(&self) -> Duration {
        self.admission.patience()
    }

    /// Sets the memory that the connection's input takes. It fails if all newcomers together hold too much.
    pub fn hold(&mut self, bytes: usize) -> Result<(), TooMuch> {
        if let Some(less) = self.held.checked_sub(bytes) {
            self.admission.held().give_back(less);
        } else {
            self.admission.held().take(bytes - self.held)?;
        }
        self.held = bytes;
        Ok(())
    }

    /// Counts an unsent reply until the result is dropped.
    pub fn hold_reply(&self, bytes: usize) -> Result<HeldReply<'_>, TooMuch> {
        self.admission.held().take_for_reply(bytes)
    }
}

impl Drop for Newcomer {
    fn drop(&mut self) {
        self.admission.held().give_back(self.held);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::AdmissionOptions;
    use crate::held_memory::HELD_BYTES_MAX;
    use bunko_command::Peer;
    use bunko_operation::Clock;

    fn admission(clock: &Clock) -> Arc<Admission> {
        Arc::new(Admission::new(AdmissionOptions::unlimited(), &Arc::default(), clock))
    }

    #[test]
    fn all_together_hold_no_more_than_they_may() {
        let admission = admission(&Clock::standing(0));
        let newcomer = || Newcomer::new(&admission.admit(Peer::Unix, 0).expect("admitted"));
        let (mut one, mut other) = (newcomer(), newcomer());
        assert!(one.hold(HELD_BYTES_MAX - 10).is_ok() && other.hold(10).is_ok());
        assert!(other.hold(11).is_err() && one.hold_reply(1).is_err());
        assert!(one.hold(0).is_ok() && other.hold(11).is_ok());
        drop(one.hold_reply(HELD_BYTES_MAX - 11).ok().expect("there is room"));
        drop(other);
        assert!(one.hold(HELD_BYTES_MAX).is_ok());
    }

    #[test]
    fn time_runs_while_something_is_begun() {
        let clock = Clock::standing(0);
        let mut newcomer = Newcomer::new(&admission(&clock).admit(Peer::Unix, 0).expect("admitted"));
        newcomer.note(true);
        let deadline = newcomer.deadline().expect("it runs");
        clock.advance(Duration::from_secs(1));
        newcomer.note(true);
        assert_eq!(newcomer.deadline(), Some(deadline));
        newcomer.note(false);
        assert_eq!(newcomer.deadline(), None);
    }
}
