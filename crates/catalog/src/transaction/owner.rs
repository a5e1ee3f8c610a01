//! A transaction, as those see it who want what it has.
//!
//! It keeps what it has changed to itself until it ends, over several requests of its client. Where requests queue, each of
//! them waits once, and all who want the same wait as often. So the requests of a client are hurried whose transaction has
//! what others wait for, and those of a client whose turn it is next.

use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the requests of one connection are hurried.
#[derive(Debug, Default)]
pub struct Haste(AtomicBool);

impl Haste {
    /// Whether they are now.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// From now on, or no more.
    pub fn set(&self, is_on: bool) {
        // Most often nothing changes, and the threads that serve read it.
        if self.is_on() != is_on {
            self.0.store(is_on, Ordering::Relaxed);
        }
    }
}

/// One transaction; two are the same if they are one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Owner(Arc<Mutex<Awaited>>);

#[derive(Debug, Default)]
struct Awaited {
    is_awaited: bool,
    /// Of the connection that the last statement came over.
    haste: Option<Arc<Haste>>,
}

impl PartialEq for Owner {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Owner {
    /// Somebody waits for what it has.
    pub fn note_wait(&self) {
        let mut awaited = self.0.lock();
        awaited.is_awaited = true;
        if let Some(haste) = &awaited.haste {
            haste.set(true);
        }
    }

    /// A statement of it comes over that connection.
    pub fn came_over(&self, haste: &Arc<Haste>) {
        let mut awaited = self.0.lock();
        if awaited.is_awaited {
            haste.set(true);
        }
        if awaited.haste.as_ref().is_some_and(|last| Arc::ptr_eq(last, haste)) {
            return;
        }
        if let Some(last) = awaited.haste.replace(Arc::clone(haste)) {
            last.set(false);
        }
    }

    /// It has ended, and has nothing any more.
    pub fn end(&self) {
        let Awaited { haste, .. } = std::mem::take(&mut *self.0.lock());
        if let Some(haste) = haste {
            haste.set(false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_connection_of_the_last_statement_is_hurried_until_the_end() {
        let (owner, first, second) = (Owner::default(), Arc::new(Haste::default()), Arc::new(Haste::default()));
        owner.came_over(&first);
        assert!(!first.is_on());
        owner.note_wait();
        assert!(first.is_on());
        owner.came_over(&second);
        assert!(!first.is_on() && second.is_on());
        owner.end();
        owner.came_over(&first);
        assert!(!first.is_on() && !second.is_on());
    }
}
