//! A connection's future, and who may run it next.

use super::Executor;
use crate::socket::Socket;
use bunko_command::Haste;
use parking_lot::Mutex;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, Wake, Waker};

/// Nothing happened since it last ran.
const IDLE: u8 = 0;
/// It stands in the queue, once.
const QUEUED: u8 = 1;
/// A thread runs it.
const RUNNING: u8 = 2;
/// A thread runs it, and something happened meanwhile: it must run once more.
const NOTIFIED: u8 = 3;
/// Its future is gone.
const ENDED: u8 = 4;

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A future that any thread may run, one at a time.
pub(super) struct Task {
    pub id: u64,
    pub socket: Arc<Socket>,
    pub haste: Arc<Haste>,
    state: AtomicU8,
    work: Mutex<Option<Work>>,
    executor: Arc<Executor>,
}

/// What became of a task that was run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ran {
    /// It waits for an event.
    Waits,
    /// It asked to run again, or something happened while it ran: it belongs at the end of the queue.
    Again,
    /// It came to its end, or panicked.
    Ended,
}

impl Task {
    pub fn new(executor: &Arc<Executor>, id: u64, socket: &Arc<Socket>, haste: &Arc<Haste>, work: Work) -> Arc<Self> {
        let (executor, socket, haste) = (Arc::clone(executor), Arc::clone(socket), Arc::clone(haste));
        Arc::new(Self { id, socket, haste, state: AtomicU8::new(IDLE), work: Mutex::new(Some(work)), executor })
    }

    /// Notes that something happened; whether the caller must queue it.
    pub fn notify(&self) -> bool {
        // Written even where nothing changes: what the caller did before is then seen by whoever runs the task next.
        let previous = self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, |state| match state {
            IDLE => Some(QUEUED),
            RUNNING => Some(NOTIFIED),
            ENDED => None,
            noted => Some(noted),
        });
        previous == Ok(IDLE)
    }

    /// Runs it; it was taken from the queue.
    pub fn run(self: &Arc<Self>) -> Ran {
        if self.state.compare_exchange(QUEUED, RUNNING, Ordering::AcqRel, Ordering::Acquire).is_err() {
            return Ran::Ended;
        }
        let waker = Waker::from(Arc::clone(self));
        let mut work = self.work.lock();
        let Some(future) = work.as_mut() else { return Ran::Ended };
        // A command that panics ends its own connection and no other.
        let polled = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(&mut Context::from_waker(&waker))));
        if !matches!(polled, Ok(Poll::Pending)) {
            *work = None;
            self.state.store(ENDED, Ordering::Release);
            return Ran::Ended;
        }
        drop(work);
        match self.state.compare_exchange(RUNNING, IDLE, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Ran::Waits,
            Err(_) => {
                self.state.swap(QUEUED, Ordering::AcqRel);
                Ran::Again
            }
        }
    }

    /// Drops its future; nobody runs it.
    pub fn cancel(&self) {
        self.state.store(ENDED, Ordering::Release);
        *self.work.lock() = None;
    }
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.notify() {
            self.executor.queue(Arc::clone(self));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::os::unix::net::UnixStream;

    fn task(work: impl Future<Output = ()> + Send + 'static) -> Arc<Task> {
        let executor = Executor::new(1).unwrap();
        let socket = Arc::new(Socket::new(UnixStream::pair().unwrap().0));
        Task::new(&executor, 1, &socket, &Arc::default(), Box::pin(work))
    }

    #[test]
    fn it_is_queued_once_however_much_happens() {
        let task = task(std::future::pending());
        assert!(task.notify());
        assert!(!task.notify());
        assert_eq!(task.run(), Ran::Waits);
        assert!(task.notify());
    }

    #[test]
    fn what_happens_while_it_runs_has_it_run_again() {
        let mut runs = 0;
        let task = task(poll_fn(move |context| {
            runs += 1;
            if runs == 1 {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            Poll::Ready(())
        }));
        assert!(task.notify());
        assert_eq!(task.run(), Ran::Again);
        assert_eq!(task.run(), Ran::Ended);
        assert!(!task.notify());
        assert_eq!(task.run(), Ran::Ended);
    }

    #[test]
    fn what_is_cancelled_does_not_run() {
        let task = task(async { unreachable!() });
        assert!(task.notify());
        task.cancel();
        assert!(!task.notify());
        assert_eq!(task.run(), Ran::Ended);
    }
}
