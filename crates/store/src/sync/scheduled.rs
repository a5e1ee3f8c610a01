//! The scheduler's locks in the form of `parking_lot`'s.

use shuttle::scheduler::RandomScheduler;
use shuttle::{Config, Runner, sync};
use std::ops::{Deref, DerefMut};

/// Enough for what opens files, in bytes.
const STACK_BYTES: usize = 1 << 20;

/// Runs a model in that many orders of its threads, which a seed of 0 chooses.
///
/// # Panics
/// Where one of them breaks a promise or stands still; the message has the order.
pub fn explore(orders: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut config = Config::new();
    config.stack_size = STACK_BYTES;
    Runner::new(RandomScheduler::new_from_seed(0, orders), config).run(model);
}

/// A lock that is not poisoned: a panic ends the model.
#[derive(Debug, Default)]
pub struct Mutex<T>(sync::Mutex<T>);

/// What a [`Mutex`] guards, while it is locked.
#[derive(Debug)]
pub struct MutexGuard<'m, T> {
    mutex: &'m Mutex<T>,
    /// `None` only inside the methods that give the lock up for a while.
    guard: Option<sync::MutexGuard<'m, T>>,
}

/// A condition that a guard waits for.
#[derive(Debug, Default)]
pub struct Condvar(sync::Condvar);

impl<T> Mutex<T> {
    /// An open lock.
    pub fn new(value: T) -> Self {
        Self(sync::Mutex::new(value))
    }

    /// Waits for the lock.
    ///
    /// # Panics
    /// Where a thread of the model panicked.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard { mutex: self, guard: Some(self.0.lock().expect("no panic")) }
    }
}

impl<T> MutexGuard<'_, T> {
    /// Opens the lock for the time of a call.
    pub fn unlocked<R>(guard: &mut Self, call: impl FnOnce() -> R) -> R {
        guard.guard = None;
        let outcome = call();
        guard.guard = guard.mutex.lock().guard;
        outcome
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.guard.as_ref().expect("locked")
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.guard.as_mut().expect("locked")
    }
}

impl Condvar {
    /// A condition that nobody waits for.
    pub fn new() -> Self {
        Self::default()
    }

    /// Waits until it is told, without the lock meanwhile.
    ///
    /// # Panics
    /// Where a thread of the model panicked.
    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        let inner = guard.guard.take().expect("locked");
        guard.guard = Some(self.0.wait(inner).expect("no panic"));
    }

    /// Waits for as long as the condition holds.
    pub fn wait_while<T>(&self, guard: &mut MutexGuard<'_, T>, mut holds: impl FnMut(&mut T) -> bool) {
        while holds(&mut *guard) {
            self.wait(guard);
        }
    }

    /// Tells all who wait.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}
