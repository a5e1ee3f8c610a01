//! A bell: a future that waits for an event without holding a thread, and is woken when it happens.
//!
//! The bell's owner defines the event. A listener notes the number of rings before it checks for news, so a ring
//! between its check and its wait is not lost.

use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

/// Rung at every event; a ring without listeners takes no lock.
#[derive(Debug, Default)]
pub struct Bell {
    rings: AtomicU64,
    /// Number of listeners, so that a ring without any need not take the lock.
    listening: AtomicUsize,
    listeners: Mutex<Listeners>,
}

#[derive(Debug, Default)]
struct Listeners {
    last_ticket: u64,
    by_ticket: FxHashMap<u64, Waker>,
}

impl Bell {
    /// Number of rings so far; a listener passes it to [`Bell::after`].
    pub fn rings(&self) -> u64 {
        self.rings.load(Ordering::SeqCst)
    }

    /// Wakes all listeners.
    pub fn ring(&self) {
        // Both sides write before they read, in one total order (`SeqCst`): either the ringer sees the listener, or the
        // listener sees the ring.
        self.rings.fetch_add(1, Ordering::SeqCst);
        if self.listening.load(Ordering::SeqCst) == 0 {
            return;
        }
        let mut listeners = self.listeners.lock();
        let woken = std::mem::take(&mut listeners.by_ticket);
        self.listening.store(0, Ordering::SeqCst);
        drop(listeners);
        woken.into_values().for_each(Waker::wake);
    }

    /// Whether there are listeners, for owners that do more than ring.
    pub fn is_listened_to(&self) -> bool {
        self.listening.load(Ordering::Relaxed) > 0
    }

    /// Ready once the number of rings differs from `heard`.
    pub fn after(self: &Arc<Self>, heard: u64) -> Listening {
        Listening { bell: Arc::clone(self), heard, ticket: None }
    }

    fn listen(&self, ticket: Option<u64>, waker: &Waker) -> u64 {
        let mut listeners = self.listeners.lock();
        let ticket = ticket.unwrap_or_else(|| {
            listeners.last_ticket += 1;
            listeners.last_ticket
        });
        listeners.by_ticket.insert(ticket, waker.clone());
        self.listening.store(listeners.by_ticket.len(), Ordering::SeqCst);
        ticket
    }

    fn leave(&self, ticket: u64) {
        let mut listeners = self.listeners.lock();
        listeners.by_ticket.remove(&ticket);
        self.listening.store(listeners.by_ticket.len(), Ordering::SeqCst);
    }
}

/// A wait for the next ring.
#[derive(Debug)]
pub struct Listening {
    bell: Arc<Bell>,
    heard: u64,
    ticket: Option<u64>,
}

impl Future for Listening {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.bell.rings() == self.heard {
            self.ticket = Some(self.bell.listen(self.ticket, context.waker()));
        }
        if self.bell.rings() == self.heard { Poll::Pending } else { Poll::Ready(()) }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            self.bell.leave(ticket);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Wake;

    /// Counts how often it is woken.
    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn poll(listening: &mut Listening, count: &Arc<Count>) -> Poll<()> {
        let waker = Waker::from(Arc::clone(count));
        Pin::new(listening).poll(&mut Context::from_waker(&waker))
    }

    #[test]
    fn each_listener_is_woken_once() {
        let (bell, count) = (Arc::new(Bell::default()), Arc::new(Count::default()));
        let mut listening = bell.after(bell.rings());
        assert_eq!(poll(&mut listening, &count), Poll::Pending);
        assert_eq!(poll(&mut listening, &count), Poll::Pending);
        bell.ring();
        bell.ring();
        assert_eq!(count.0.load(Ordering::SeqCst), 1);
        assert_eq!(poll(&mut listening, &count), Poll::Ready(()));
    }

    #[test]
    fn a_ring_before_the_wait_is_heard() {
        let (bell, count) = (Arc::new(Bell::default()), Arc::new(Count::default()));
        let heard = bell.rings();
        bell.ring();
        assert_eq!(poll(&mut bell.after(heard), &count), Poll::Ready(()));
    }

    #[test]
    fn a_listener_that_goes_away_is_forgotten() {
        let (bell, count) = (Arc::new(Bell::default()), Arc::new(Count::default()));
        let mut listening = bell.after(bell.rings());
        assert_eq!(poll(&mut listening, &count), Poll::Pending);
        drop(listening);
        assert_eq!(bell.listening.load(Ordering::SeqCst), 0);
        bell.ring();
        assert_eq!(count.0.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn no_ring_is_lost_between_threads() {
        for _ in 0..2_000 {
            let bell = Arc::new(Bell::default());
            let heard = bell.rings();
            let ringing = Arc::clone(&bell);
            let thread = std::thread::spawn(move || ringing.ring());
            let mut listening = bell.after(heard);
            let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
            while Pin::new(&mut listening).poll(&mut Context::from_waker(&waker)).is_pending() {
                std::thread::park_timeout(std::time::Duration::from_secs(20));
            }
            thread.join().expect("it only rings");
        }
    }

    struct Unpark(std::thread::Thread);

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
}
