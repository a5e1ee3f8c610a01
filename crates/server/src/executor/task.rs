//! The future of a connection, and the state that decides which thread may run it.

use super::Executor;
use crate::socket::Socket;
use bunko_command::Haste;
use parking_lot::Mutex;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::task::{Context, Poll, Wake, Waker};

/// No event since it last ran.
const IDLE: u8 = 0;
/// In a queue, once.
const QUEUED: u8 = 1;
/// Run by a thread.
const RUNNING: u8 = 2;
/// Run by a thread, with an event since: it must run once more.
const NOTIFIED: u8 = 3;
/// The future is dropped.
const ENDED: u8 = 4;

/// From this many bytes read and written in one run on, a task is heavy: about 50 us.
pub(super) const HEAVY_BYTES: usize = 64 << 10;

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A future that any thread may run, one at a time.
pub(super) struct Task {
    pub id: u64,
    pub socket: Arc<Socket>,
    pub haste: Arc<Haste>,
    /// See [`Self::is_heavy`].
    is_heavy: AtomicBool,
    state: AtomicU8,
    work: Mutex<Option<Work>>,
    executor: Arc<Executor>,
}

/// The result of running a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ran {
    /// The task waits for an event.
    Waits,
    /// The task asked to run again, or an event arrived while it ran: it goes to the end of the queue.
    Again,
    /// The task finished or panicked.
    Ended,
}

impl Task {
    pub fn new(executor: &Arc<Executor>, id: u64, socket: &Arc<Socket>, haste: &Arc<Haste>, work: Work) -> Arc<Self> {
        let (executor, socket, haste) = (Arc::clone(executor), Arc::clone(socket), Arc::clone(haste));
        Arc::new(Self {
            id,
            socket,
            haste,
            is_heavy: AtomicBool::new(false),
            state: AtomicU8::new(IDLE),
            work: Mutex::new(Some(work)),
            executor,
        })
    }

    /// Notes an event. Returns whether the caller must queue the task.
    pub fn notify(&self) -> bool {
        // Written even if the state stays: the thread that next runs the task then sees the caller's earlier writes.
        let previous = self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, |state| match state {
            IDLE => Some(QUEUED),
            RUNNING => Some(NOTIFIED),
            ENDED => None,
            noted => Some(noted),
        });
        previous == Ok(IDLE)
    }

    /// Whether its last run moved [`HEAVY_BYTES`].
    pub fn is_heavy(&self) -> bool {
        self.is_heavy.load(Ordering::Relaxed)
    }

    /// Notes that a run moved this many bytes.
    pub fn weigh(&self, moved: usize) {
        let is_heavy = moved >= HEAVY_BYTES;
        if is_heavy != self.is_heavy() {
            self.is_heavy.store(is_heavy, Ordering::Relaxed);
        }
    }

    /// Runs the task, which was taken from a queue.
    pub fn run(self: &Arc<Self>) -> Ran {
        if self.state.compare_exchange(QUEUED, RUNNING, Ordering::AcqRel, Ordering::Acquire).is_err() {
            return Ran::Ended;
        }
        let waker = Waker::from(Arc::clone(self));
        let mut work = self.work.lock();
        let Some(future) = work.as_mut() else { return Ran::Ended };
        // A panic in a command ends only its own connection.
        let polled = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(&mut Context::from_waker(&waker))));
        if !matches!(polled, Ok(Poll::Pending)) {
            *work = None;
            self.state.store(ENDED, Ordering::Release);
            return Ran::Ended;
        }
        drop(work);
        self.weigh(self.socket.take_moved());
        match self.state.compare_exchange(RUNNING, IDLE, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Ran::Waits,
            Err(_) => {
                self.state.swap(QUEUED, Ordering::AcqRel);
                Ran::Again
            }
        }
    }

    /// Drops the future. No thread may be running it.
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
        let executor = Executor::new(1, bunko_host::Clock::machine()).unwrap();
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
    fn an_event_while_a_task_runs_has_it_run_again() {
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
    fn a_cancelled_task_does_not_run() {
        let task = task(async { unreachable!() });
        assert!(task.notify());
        task.cancel();
        assert!(!task.notify());
        assert_eq!(task.run(), Ran::Ended);
    }
}
