//! The model scheduler's locks with the interface of `parking_lot`'s.

use shuttle::scheduler::RandomScheduler;
use shuttle::{Config, Runner, sync};
use std::ops::{Deref, DerefMut};

/// Stack size of a model thread in bytes; enough for code that opens files.
const STACK_BYTES: usize = 1 << 20;

/// Runs a model with `orders` different orders of its threads, chosen with seed 0.
///
/// # Panics
/// If the model panics or deadlocks in one of the orders; the message has the order.
pub fn explore(orders: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut config = Config::new();
    config.stack_size = STACK_BYTES;
    Runner::new(RandomScheduler::new_from_seed(0, orders), config).run(model);
}

/// A lock without poisoning: a panic ends the model.
#[derive(Debug, Default)]
pub struct Mutex<T>(sync::Mutex<T>);

/// Access to the value of a locked [`Mutex`].
#[derive(Debug)]
pub struct MutexGuard<'m, T> {
    mutex: &'m Mutex<T>,
    /// `None` only inside methods that release the lock for a while.
    guard: Option<sync::MutexGuard<'m, T>>,
}

/// A condition variable.
#[derive(Debug, Default)]
pub struct Condvar(sync::Condvar);

impl<T> Mutex<T> {
    /// An unlocked mutex.
    pub fn new(value: T) -> Self {
        Self(sync::Mutex::new(value))
    }

    /// Waits for the lock.
    ///
    /// # Panics
    /// If a thread of the model panicked.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard { mutex: self, guard: Some(self.0.lock().expect("no panic")) }
    }
}

impl<T> MutexGuard<'_, T> {
    /// Releases the lock during `call`.
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
    /// A condition variable without waiting threads.
    pub fn new() -> Self {
        Self::default()
    }

    /// Waits for a notification, with the lock released meanwhile.
    ///
    /// # Panics
    /// If a thread of the model panicked.
    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        let inner = guard.guard.take().expect("locked");
        guard.guard = Some(self.0.wait(inner).expect("no panic"));
    }

    /// Waits while the condition holds.
    pub fn wait_while<T>(&self, guard: &mut MutexGuard<'_, T>, mut holds: impl FnMut(&mut T) -> bool) {
        while holds(&mut *guard) {
            self.wait(guard);
        }
    }

    /// Wakes all waiting threads.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}
