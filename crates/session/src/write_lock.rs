//! The lock of `fsync: {lock: true}`. While it is held, no command changes anything and no background work changes
//! files. `fsyncUnlock` must run as often as the lock was taken.
//!
//! ```text
//!            first lock                 no write runs, checkpoint made
//!   open ───────────────► closing ─────────────────────────────────────► held ─► held twice, ...
//!    ▲                       │ out of time, killed, checkpoint failed      │
//!    └───────────────────────┴─────────────────────────────────────────────┘ last unlock
//! ```

use bunko_catalog::{Catalog, from_storage};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::OperationContext;
use bunko_store::StillFiles;
use parking_lot::{Condvar, Mutex};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long a waiting thread sleeps before it checks for interruption.
const SLICE: Duration = Duration::from_millis(20);
/// How long the lock waits before it checks again whether a write still runs.
const LOOK: Duration = Duration::from_millis(1);

/// The server's lock against writes.
#[derive(Debug, Default)]
pub struct WriteLock {
    state: Mutex<LockState>,
    changed: Condvar,
    /// Whether writes must wait: while the lock is being taken, and while it is held.
    is_closed: AtomicBool,
}

#[derive(Debug, Default)]
struct LockState {
    is_closing: bool,
    /// How often the lock has been taken.
    count: u64,
    files: Option<StillFiles>,
}

impl WriteLock {
    /// Whether writes must wait.
    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }

    /// Takes the lock once more. The first time, waits within `patience` for running writes to end, then makes
    /// everything durable. `is_one_writing` says whether a write still runs. Returns how often the lock is held.
    /// # Errors
    /// `LockTimeout` if a write does not end in time; errors of interruption and of the checkpoint.
    pub fn lock(
        &self,
        operation: &OperationContext,
        patience: Duration,
        catalog: &Catalog,
        is_one_writing: impl Fn() -> bool,
    ) -> Result<u64> {
        let deadline = operation.clock().now() + patience;
        let mut state = self.state.lock();
        while state.is_closing {
            self.changed.wait_for(&mut state, SLICE);
            operation.check()?;
        }
        if state.count == 0 {
            state.is_closing = true;
            // Sequentially consistent, so that the thread that deletes expired documents either sees the lock closed,
            // or is itself seen deleting.
            self.is_closed.store(true, Ordering::SeqCst);
            drop(state);
            let closed = close(operation, deadline, catalog, is_one_writing);
            state = self.state.lock();
            state.is_closing = false;
            self.changed.notify_all();
            match closed {
                Ok(files) => state.files = Some(files),
                Err(failure) => {
                    self.is_closed.store(false, Ordering::Relaxed);
                    return Err(failure);
                }
            }
        }
        state.count += 1;
        Ok(state.count)
    }

    /// Releases the lock once. Returns how often it is still held.
    /// # Errors
    /// `IllegalOperation` if the lock is not held.
    pub fn unlock(&self) -> Result<u64> {
        let mut state = self.state.lock();
        if state.count == 0 {
            return Err(Failure::new(ErrorCode::ILLEGAL_OPERATION, "fsyncUnlock called when not locked"));
        }
        state.count -= 1;
        if state.count == 0 {
            self.open(&mut state);
        }
        Ok(state.count)
    }

    /// Releases the lock completely, because the server is shutting down.
    pub fn release(&self) {
        let mut state = self.state.lock();
        state.count = 0;
        self.open(&mut state);
    }

    fn open(&self, state: &mut LockState) {
        state.files = None;
        self.is_closed.store(false, Ordering::Relaxed);
        self.changed.notify_all();
    }

    /// Waits until writes may continue.
    /// # Errors
    /// If the operation is interrupted.
    pub fn wait(&self, operation: &OperationContext) -> Result<()> {
        let mut state = self.state.lock();
        while self.is_closed() {
            self.changed.wait_for(&mut state, SLICE);
            operation.check()?;
        }
        Ok(())
    }
}

/// Waits for the writes that began before, then makes them durable.
fn close(
    operation: &OperationContext,
    deadline: Instant,
    catalog: &Catalog,
    is_one_writing: impl Fn() -> bool,
) -> Result<StillFiles> {
    while is_one_writing() {
        operation.check()?;
        if operation.clock().now() >= deadline {
            return Err(Failure::new(ErrorCode::LOCK_TIMEOUT, "Fsync lock timed out"));
        }
        std::thread::sleep(LOOK);
    }
    catalog.store().checkpoint().map_err(from_storage)?;
    Ok(StillFiles::hold(catalog.store()))
}
