//! Replies that clients have not read. They count as the server's memory from the moment when a write would block until
//! the client has taken them.
//!
//! **Invariant:** unread replies hold at most twice the part of the budget for replies, plus one reply. Beyond that,
//! the connection whose client has read nothing for the longest time is closed.

use bunko_operation::{Clock, Draw, Purpose, ServerMemory};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// While others wait for memory, a client that has read nothing for this long is closed.
const UNREAD_MAX: Duration = Duration::from_secs(5);
/// Reading fewer bytes than this at a time does not count as reading.
const PROGRESS_BYTES: usize = 256 * 1024;
/// Interval at which a connection that waits for its client checks whether it must close.
pub(crate) const LOOK: Duration = Duration::from_millis(250);

/// The time when a client last read something, and a number that makes it unique.
type Age = (Instant, u64);

struct Entry {
    bytes: u64,
    closed: Arc<Notify>,
}

#[derive(Default)]
struct Entries {
    last: u64,
    bytes: u64,
    by_age: BTreeMap<Age, Entry>,
}

impl Entries {
    fn insert(&mut self, entry: Entry, now: Instant) -> Age {
        self.last += 1;
        let age = (now, self.last);
        self.bytes += entry.bytes;
        self.by_age.insert(age, entry);
        age
    }

    fn remove(&mut self, age: Age) -> Option<Entry> {
        let entry = self.by_age.remove(&age)?;
        self.bytes -= entry.bytes;
        Some(entry)
    }
}

/// The replies of all connections that wait for their clients.
pub(crate) struct UnreadReplies {
    memory: Arc<ServerMemory>,
    clock: Clock,
    entries: Mutex<Entries>,
}

impl UnreadReplies {
    pub fn new(memory: &Arc<ServerMemory>, clock: &Clock) -> Self {
        Self { memory: Arc::clone(memory), clock: clock.clone(), entries: Mutex::default() }
    }

    /// Counts a reply of this many bytes until the result is dropped. `drawn` is the memory that was drawn for the
    /// reply, if any.
    pub fn begin(&self, bytes: usize, drawn: Option<Draw>) -> Unread<'_> {
        let mut draw = drawn.unwrap_or_else(|| self.memory.count(0, Purpose::Reply));
        draw.set(bytes as u64);
        let closed = Arc::new(Notify::new());
        let mut entries = self.entries.lock();
        let entry = Entry { bytes: bytes as u64, closed: Arc::clone(&closed) };
        let age = entries.insert(entry, self.clock.now());
        while entries.bytes > 2 * self.memory.own_limit(Purpose::Reply) && entries.by_age.len() > 1 {
            let Some((oldest, _)) = entries.by_age.first_key_value() else { break };
            let oldest = *oldest;
            // The connection waits at its socket, and this notification ends the wait.
            if let Some(entry) = entries.remove(oldest) {
                entry.closed.notify_one();
            }
        }
        Unread { replies: self, age, read: 0, closed, _draw: draw }
    }

    /// Whether others want the room that unread replies hold.
    fn is_room_wanted(&self, entries: &Entries) -> bool {
        self.memory.waiting_for(Purpose::Reply) > 0
            || self.memory.held() > self.memory.limit(Purpose::Work)
            || entries.bytes > self.memory.own_limit(Purpose::Reply)
    }
}

/// A reply that its client has not read.
pub(crate) struct Unread<'r> {
    replies: &'r UnreadReplies,
    age: Age,
    /// Bytes that the client has read since its age was noted.
    read: usize,
    closed: Arc<Notify>,
    _draw: Draw,
}

impl Unread<'_> {
    /// Notes that the client has read this many bytes of the reply.
    pub fn note_progress(&mut self, bytes: usize) {
        self.read += bytes;
        if self.read < PROGRESS_BYTES {
            return;
        }
        self.read = 0;
        let mut entries = self.replies.entries.lock();
        if let Some(entry) = entries.remove(self.age) {
            self.age = entries.insert(entry, self.replies.clock.now());
        }
    }

    /// Returns once the connection is to be closed because replies hold too much.
    pub async fn closed(&self) {
        self.closed.notified().await;
    }

    /// Whether the connection is to be closed: others want the room, and its client has read nothing for longest.
    pub fn is_to_be_closed(&self) -> bool {
        let mut entries = self.replies.entries.lock();
        let is_oldest = entries.by_age.first_key_value().is_some_and(|(oldest, _)| *oldest == self.age);
        let is_old = self.replies.clock.since(self.age.0) >= UNREAD_MAX;
        let is_it = is_oldest && is_old && self.replies.is_room_wanted(&entries);
        if is_it {
            // The next oldest may go as soon as it asks.
            entries.remove(self.age);
        }
        is_it
    }
}

impl Drop for Unread<'_> {
    fn drop(&mut self) {
        self.replies.entries.lock().remove(self.age);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Waker};

    /// The whole budget in bytes, of which replies may take 400.
    const BUDGET: u64 = 1600;

    fn is_closed(unread: &Unread<'_>) -> bool {
        pin!(unread.closed()).poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn beyond_the_bound_the_one_goes_that_is_unread_for_longest() {
        let memory = ServerMemory::new(BUDGET);
        let replies = UnreadReplies::new(&memory, &Clock::standing(0));
        let (mut first, second) = (replies.begin(300, None), replies.begin(300, None));
        first.note_progress(PROGRESS_BYTES - 1);
        first.note_progress(1);
        assert!(!is_closed(&first) && !is_closed(&second));
        let third = replies.begin(300, None);
        assert_eq!([&first, &second, &third].map(is_closed), [false, true, false]);
        drop(second);
        assert_eq!(memory.drawn(Purpose::Reply), 600);
        drop((first, third));
        // One alone may be larger than the bound.
        let large = replies.begin(5000, memory.draw(100, Purpose::Reply));
        assert!(!is_closed(&large) && memory.held() == 5000);
        drop(large);
        assert_eq!(memory.held(), 0);
    }

    #[test]
    fn only_old_ones_go_and_only_where_room_is_wanted() {
        let memory = ServerMemory::new(BUDGET);
        let clock = Clock::standing(0);
        let replies = UnreadReplies::new(&memory, &clock);
        let old = replies.begin(300, None);
        clock.advance(UNREAD_MAX);
        let young = replies.begin(50, None);
        assert!(!old.is_to_be_closed(), "there is room");
        let more = replies.begin(51, None);
        assert!(!young.is_to_be_closed() && !more.is_to_be_closed());
        assert!(old.is_to_be_closed());
        assert!(!young.is_to_be_closed(), "it is the oldest now, and not old");
    }
}
