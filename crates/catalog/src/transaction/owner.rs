//! A transaction, as seen by operations that wait for its claims.
//!
//! A transaction keeps its claims until it ends, over several requests of its client. If each of these requests queued,
//! all operations that wait for the claims would wait as long. So the requests of a client are hurried if its
//! transaction has claims that others wait for, or if its turn is next.

use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the requests of one connection are hurried.
#[derive(Debug, Default)]
pub struct Haste(AtomicBool);

impl Haste {
    /// Whether the requests are hurried now.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Turns hurrying on or off.
    pub fn set(&self, is_on: bool) {
        // The value rarely changes, and the serving threads read it: a needless store would take the cache line from
        // them.
        if self.is_on() != is_on {
            self.0.store(is_on, Ordering::Relaxed);
        }
    }
}

/// A transaction's identity: two owners are equal if they are the same transaction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Owner(Arc<Mutex<Awaited>>);

#[derive(Debug, Default)]
struct Awaited {
    is_awaited: bool,
    /// The haste of the last statement's connection.
    haste: Option<Arc<Haste>>,
}

impl PartialEq for Owner {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Owner {
    /// Notes that another operation waits for the transaction's claims.
    pub fn note_wait(&self) {
        let mut awaited = self.0.lock();
        awaited.is_awaited = true;
        if let Some(haste) = &awaited.haste {
            haste.set(true);
        }
    }

    /// Notes that a statement of the transaction arrives on this connection.
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

    /// Notes that the transaction has ended and has no claims.
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
