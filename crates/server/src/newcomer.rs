//! Connections that nobody has logged in on, where a login is asked for: they may send little at a time, hold little
//! all together, and not take for ever.
//!
//! **Invariant:** what they hold of frames and replies that have not come to their end is at most [`HELD_BYTES_MAX`],
//! beside what the kernel keeps for their sockets.

use crate::admission::{Admission, Admitted};
use bunko_command::{ClientConnection, Service};
use bunko_wire::MAX_FRAME_BYTES;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// Largest frame of such a connection, in bytes, compressed or not. A handshake has a few hundred, and the commands that
/// are taken before a login are no larger.
pub(crate) const FRAME_BYTES_MAX: usize = 16 * 1024;
/// What they all hold together, in bytes. An honest client's frames come whole, and its replies leave at once: it holds
/// nothing, so it is served also where this is used up.
pub(crate) const HELD_BYTES_MAX: usize = 64 << 20;

/// They hold too much together.
pub(crate) struct TooMuch;

/// Largest frame that a connection may send now.
pub(crate) fn frame_bytes_max(service: &Service, client: &ClientConnection) -> usize {
    if service.asks_for_login(client) { FRAME_BYTES_MAX } else { MAX_FRAME_BYTES }
}

/// What all hold together.
#[derive(Default)]
pub(crate) struct Held(AtomicUsize);

impl Held {
    fn take(&self, bytes: usize) -> Result<(), TooMuch> {
        let taken = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |held| {
            held.checked_add(bytes).filter(|held| *held <= HELD_BYTES_MAX)
        });
        taken.map(drop).map_err(|_| TooMuch)
    }

    fn give_back(&self, bytes: usize) {
        self.0.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// One such connection.
pub(crate) struct Newcomer {
    admission: Arc<Admission>,
    /// Bytes of its input that are counted.
    held: usize,
    /// Until when it must have said something whole, or have logged in, where it is at that.
    deadline: Option<Instant>,
}

impl Newcomer {
    pub fn new(admitted: &Admitted) -> Self {
        Self { admission: Arc::clone(admitted.admission()), held: 0, deadline: None }
    }

    /// Notes whether it has begun with something that has not come to its end: a first word, a frame, a login.
    pub fn note(&mut self, is_at_something: bool) {
        self.deadline = match self.deadline {
            _ if !is_at_something => None,
            None => Some(Instant::now() + self.patience()),
            begun => begun,
        };
    }

    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// How long one thing may take.
    pub fn patience(&self) -> Duration {
        self.admission.patience()
    }

    /// Counts what its input takes now.
    pub fn hold(&mut self, bytes: usize) -> Result<(), TooMuch> {
        if let Some(less) = self.held.checked_sub(bytes) {
            self.admission.held().give_back(less);
        } else {
            self.admission.held().take(bytes - self.held)?;
        }
        self.held = bytes;
        Ok(())
    }

    /// Counts a reply that does not leave, until it is dropped.
    pub fn hold_reply(&self, bytes: usize) -> Result<HeldReply<'_>, TooMuch> {
        self.admission.held().take(bytes)?;
        Ok(HeldReply { held: self.admission.held(), bytes })
    }
}

impl Drop for Newcomer {
    fn drop(&mut self) {
        self.admission.held().give_back(self.held);
    }
}

/// A reply that is counted.
pub(crate) struct HeldReply<'a> {
    held: &'a Held,
    bytes: usize,
}

impl Drop for HeldReply<'_> {
    fn drop(&mut self) {
        self.held.give_back(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::AdmissionOptions;
    use bunko_command::Peer;

    #[test]
    fn all_together_hold_no_more_than_they_may() {
        let admission = Arc::new(Admission::new(AdmissionOptions::unlimited(), &Arc::default()));
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
        let admission = Arc::new(Admission::new(AdmissionOptions::unlimited(), &Arc::default()));
        let mut newcomer = Newcomer::new(&admission.admit(Peer::Unix, 0).expect("admitted"));
        newcomer.note(true);
        let deadline = newcomer.deadline().expect("it runs");
        newcomer.note(true);
        assert_eq!(newcomer.deadline(), Some(deadline));
        newcomer.note(false);
        assert_eq!(newcomer.deadline(), None);
    }
}
