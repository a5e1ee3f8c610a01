//! A draw that may have to wait.

use super::queue::{Left, Ticket};
use super::{Draw, Purpose, ServerMemory};
use bunko_host::Clock;
use bunko_sync::atomic::Ordering;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Instant;

/// A draw that is granted in its turn, once there is room for it. It enters the queue when it is first polled, and
/// leaves the queue when it is dropped.
#[derive(Debug)]
#[must_use]
pub struct Drawing {
    memory: Arc<ServerMemory>,
    bytes: u64,
    purpose: Purpose,
    ticket: Option<Ticket>,
}

impl Drawing {
    pub(super) fn new(memory: Arc<ServerMemory>, bytes: u64, purpose: Purpose) -> Self {
        Self { memory, bytes, purpose, ticket: None }
    }

    /// Blocks the calling thread until the draw is granted, or until that time on the clock; then returns `None`, and
    /// the draw keeps its place in the queue.
    pub fn wait_until(&mut self, until: Instant, clock: &Clock) -> Option<Draw> {
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let mut context = Context::from_waker(&waker);
        loop {
            if let Poll::Ready(draw) = pin!(&mut *self).poll(&mut context) {
                return Some(draw);
            }
            let left = until.checked_duration_since(clock.now()).filter(|left| !left.is_zero())?;
            thread::park_timeout(left);
        }
    }

    fn join(&mut self) -> Ticket {
        let waiting = &self.memory.waiting[self.purpose as usize];
        let mut queue = self.memory.queue.lock();
        waiting.fetch_add(1, Ordering::SeqCst);
        let ticket = queue.join(self.purpose, self.bytes);
        drop(queue);
        self.ticket = Some(ticket);
        ticket
    }
}

impl Future for Drawing {
    type Output = Draw;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Draw> {
        let ticket = match self.ticket {
            Some(ticket) => ticket,
            None => {
                if let Some(draw) = self.memory.draw(self.bytes, self.purpose) {
                    return Poll::Ready(draw);
                }
                let ticket = self.join();
                // Room may have become free before this draw was counted as waiting.
                self.memory.serve();
                ticket
            }
        };
        let is_granted = self.memory.queue.lock().take(self.purpose, ticket, context.waker());
        if !is_granted {
            return Poll::Pending;
        }
        self.ticket = None;
        Poll::Ready(Draw::taken(&self.memory, self.bytes, self.purpose))
    }
}

impl Drop for Drawing {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket else { return };
        let left = self.memory.queue.lock().leave(self.purpose, ticket);
        match left {
            Left::Granted => self.memory.give_back(self.bytes, self.purpose),
            Left::Waited => {
                self.memory.waiting[self.purpose as usize].fetch_sub(1, Ordering::SeqCst);
                // The draws behind this one may be smaller and find room now.
                self.memory.serve_where_needed();
            }
        }
    }
}

/// Wakes a thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
