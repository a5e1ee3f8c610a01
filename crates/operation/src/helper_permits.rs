//! Threads that help operations which run long.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many threads may help at this moment, of all operations of one server together.
#[derive(Debug, Default)]
pub struct Helpers {
    free: AtomicUsize,
}

impl Helpers {
    /// Permits for at most `count` helpers at once.
    pub fn new(count: usize) -> Arc<Self> {
        Arc::new(Self { free: AtomicUsize::new(count) })
    }

    /// Takes a permit for one thread; `None` if all are taken.
    pub fn take(self: &Arc<Self>) -> Option<HelperPermit> {
        let taken = self.free.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |free| free.checked_sub(1));
        taken.is_ok().then(|| HelperPermit(Arc::clone(self)))
    }
}

/// A permit for one thread to help; dropping it gives it back.
#[derive(Debug)]
pub struct HelperPermit(Arc<Helpers>);

impl Drop for HelperPermit {
    fn drop(&mut self) {
        self.0.free.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_no_more_than_were_given() {
        let helpers = Helpers::new(1);
        let first = helpers.take();
        assert!(first.is_some() && helpers.take().is_none());
        drop(first);
        assert!(helpers.take().is_some());
    }
}
