//! The places of the readers that copy the log into archives, for which it keeps segments. `archiving.rs` serves them.

use crate::{Lsn, SEGMENT_BYTES};
use parking_lot::Mutex;
use std::time::Instant;

/// Bytes of the log that are kept for a reader.
const KEPT_BYTES_MAX: u64 = 16 * SEGMENT_BYTES;

/// The readers of a store.
#[derive(Default)]
pub(crate) struct Archives(Mutex<Vec<Reader>>);

struct Reader {
    owner: String,
    /// Position of the next record to be read.
    next: Lsn,
    used: Instant,
}

impl Archives {
    /// Notes that a reader, known by its name, goes on at `next`. Returns false if there are `readers_max` others.
    pub fn note(&self, owner: &str, (next, now): (Lsn, Instant), readers_max: usize) -> bool {
        let mut readers = self.0.lock();
        if let Some(known) = readers.iter_mut().find(|reader| reader.owner == owner) {
            (known.next, known.used) = (next, now);
            return true;
        }
        let has_room = readers.len() < readers_max;
        if has_room {
            readers.push(Reader { owner: owner.to_owned(), next, used: now });
        }
        has_room
    }

    /// Whether there is a reader.
    pub fn has_readers(&self) -> bool {
        !self.0.lock().is_empty()
    }

    /// Position from which the readers need the log, at most `end`.
    pub fn needed_from(&self, end: Lsn) -> Lsn {
        let kept = Lsn(end.0.saturating_sub(KEPT_BYTES_MAX));
        self.0.lock().iter().map(|reader| reader.next.max(kept)).fold(end, Lsn::min)
    }

    /// Forgets the reader of that name.
    pub fn forget(&self, owner: &str) {
        self.0.lock().retain(|reader| reader.owner != owner);
    }

    /// Forgets the readers for which `is_due` holds, given the time of their last read.
    pub fn forget_if(&self, is_due: &dyn Fn(Instant) -> bool) {
        self.0.lock().retain(|reader| !is_due(reader.used));
    }
}
