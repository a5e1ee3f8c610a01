//! The memory of all connections that must log in and have not.
//!
//! **Invariant:** unfinished frames and replies of these connections take at most [`HELD_BYTES_MAX`] together, not
//! counting the kernel's socket buffers.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Maximum memory of all connections that must log in and have not, in bytes. The frames of an honest client arrive
/// whole and its replies leave at once, so it holds nothing and is served even if the limit is reached.
pub(crate) const HELD_BYTES_MAX: usize = 64 << 20;

/// The connections hold too much together.
pub(crate) struct TooMuch;

/// Memory of all connections that must log in and have not, in bytes.
#[derive(Default)]
pub(crate) struct Held(AtomicUsize);

impl Held {
    pub fn take(&self, bytes: usize) -> Result<(), TooMuch> {
        let taken = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |held| {
            held.checked_add(bytes).filter(|held| *held <= HELD_BYTES_MAX)
        });
        taken.map(drop).map_err(|_| TooMuch)
    }

    pub fn give_back(&self, bytes: usize) {
        self.0.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Counts an unsent reply until the result is dropped.
    pub fn take_for_reply(&self, bytes: usize) -> Result<HeldReply<'_>, TooMuch> {
        self.take(bytes)?;
        Ok(HeldReply { held: self, bytes })
    }
}

/// A counted reply.
pub(crate) struct HeldReply<'a> {
    held: &'a Held,
    bytes: usize,
}

impl Drop for HeldReply<'_> {
    fn drop(&mut self) {
        self.held.give_back(self.bytes);
    }
}
