//! Holds threads at failpoints.

use super::Failpoint;
use parking_lot::{Condvar, Mutex};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// How long a test waits for a thread to arrive before it fails.
const PATIENCE: Duration = Duration::from_mins(1);

/// Held failpoints. All threads of the process share them, so its tests take turns.
static HELD: Mutex<Vec<HeldPoint>> = Mutex::new(Vec::new());
static CHANGED: Condvar = Condvar::new();
/// Number of held failpoints, for a quick check when none is held.
static COUNT: AtomicUsize = AtomicUsize::new(0);

struct HeldPoint {
    point: Failpoint,
    is_reached: bool,
}

/// A held failpoint, until this is dropped.
#[derive(Debug)]
pub struct Hold(Failpoint);

/// Holds the next thread that arrives, and lets later ones pass.
///
/// # Panics
/// If the failpoint is held already.
#[must_use]
pub fn hold(point: Failpoint) -> Hold {
    let mut held = HELD.lock();
    assert!(held.iter().all(|place| place.point != point), "{point:?} is held already");
    held.push(HeldPoint { point, is_reached: false });
    COUNT.fetch_add(1, Ordering::SeqCst);
    Hold(point)
}

impl Hold {
    /// Returns once a thread has arrived; the thread stays there.
    ///
    /// # Panics
    /// If no thread arrives within a minute.
    pub fn wait(&self) {
        let is_awaited =
            |held: &mut Vec<HeldPoint>| !held.iter().any(|place| place.point == self.0 && place.is_reached);
        let waited = CHANGED.wait_while_for(&mut HELD.lock(), is_awaited, PATIENCE);
        assert!(!waited.timed_out(), "no thread comes to {:?}", self.0);
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        HELD.lock().retain(|place| place.point != self.0);
        COUNT.fetch_sub(1, Ordering::SeqCst);
        CHANGED.notify_all();
    }
}

pub(super) fn pass(point: Failpoint) {
    if COUNT.load(Ordering::SeqCst) == 0 {
        return;
    }
    let mut held = HELD.lock();
    let Some(place) = held.iter_mut().find(|place| place.point == point && !place.is_reached) else { return };
    place.is_reached = true;
    CHANGED.notify_all();
    // If the failpoint is held anew meanwhile, `is_reached` is false, and the thread that was held before goes on.
    while held.iter().any(|place| place.point == point && place.is_reached) {
        CHANGED.wait(&mut held);
    }
}
