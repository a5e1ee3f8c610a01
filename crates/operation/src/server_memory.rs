//! The server's budget of memory: everything that grows with a client's wish draws from it.
//!
//! Operations are counted by the allocator and tell what they hold (`HeldMemory`). What the server holds for clients outside of
//! operations, a message that arrives or a reply that is not read, is a [`Draw`]. A draw is taken before the memory is, waits in
//! its turn where there is no room, and goes back when it is dropped.
//!
//! **Invariant:** a draw that is asked for never takes the budget beyond the part of its purpose. Only [`ServerMemory::count`] and
//! [`Draw::set`] go beyond it: they count memory that is taken already.
//! **Invariant:** draws of one purpose are served in the order in which they were asked for, and a draw that has room and stands
//! first does not wait.

mod drawing;
#[cfg(all(test, feature = "models"))]
mod model;
mod queue;

pub use drawing::Drawing;

use crate::sync::Mutex;
use crate::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use queue::Queue;
use std::sync::Arc;
use std::task::Waker;

/// What memory is drawn for. Each purpose may fill the budget up to its own part, so that work which has begun comes to its end
/// however many messages wait, and small commands run however much work there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A message from its first bytes until it is executed, and the beginning of a long command.
    Message,
    /// What operations hold, and what they make for others: plans, keys, runs of a build, tables of a search.
    Work,
    /// A reply that the client has not taken yet. It is counted, never asked for.
    Reply,
}

/// The parts are sixteenths of the budget.
const PARTS: u64 = 16;
/// From here on the budget is short: what can take less takes less.
const SHORT_PART: u64 = 11;

impl Purpose {
    const ALL: [Self; 3] = [Self::Message, Self::Work, Self::Reply];

    /// How many of the sixteen parts may be held, by all purposes together, after a draw for this one. The last part is left
    /// to operations too small to be refused, an administrator's among them.
    fn part(self) -> u64 {
        match self {
            Self::Message => 12,
            Self::Work => 15,
            Self::Reply => PARTS,
        }
    }
}

/// The budget of one server, in bytes.
#[derive(Debug)]
pub struct ServerMemory {
    bytes_max: u64,
    /// What all draws and all operations hold.
    held: AtomicI64,
    /// What the draws for each purpose hold.
    drawn: [AtomicU64; Purpose::ALL.len()],
    /// How many draws wait, for each purpose.
    waiting: [AtomicUsize; Purpose::ALL.len()],
    queue: Mutex<Queue>,
}

impl Default for ServerMemory {
    /// A budget without a limit.
    fn default() -> Self {
        // Sums of a few of them still fit.
        Self::of(i64::MAX as u64 / 4)
    }
}

impl ServerMemory {
    /// A budget of so many bytes.
    pub fn new(bytes_max: u64) -> Arc<Self> {
        Arc::new(Self::of(bytes_max.min(i64::MAX as u64 / 4)))
    }

    fn of(bytes_max: u64) -> Self {
        Self {
            bytes_max,
            held: AtomicI64::new(0),
            drawn: Default::default(),
            waiting: Default::default(),
            queue: Mutex::default(),
        }
    }

    /// The budget, in bytes.
    pub fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    /// What is held, by draws and by operations, in bytes.
    pub fn held(&self) -> u64 {
        u64::try_from(self.held.load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// What the draws for a purpose hold, in bytes. For [`Purpose::Work`] without what the allocator counts of operations.
    pub fn drawn(&self, purpose: Purpose) -> u64 {
        self.drawn[purpose as usize].load(Ordering::Relaxed)
    }

    /// How many draws wait for room.
    pub fn waiting(&self) -> usize {
        self.waiting.iter().map(|waiting| waiting.load(Ordering::Relaxed)).sum()
    }

    /// How many draws of a purpose wait for room.
    pub fn waiting_for(&self, purpose: Purpose) -> usize {
        self.waiting[purpose as usize].load(Ordering::Relaxed)
    }

    /// Whether something waits for room, or soon will: what can take less, such as a batch, takes less.
    pub fn is_short(&self) -> bool {
        self.held() > self.part(SHORT_PART) || self.waiting() > 0
    }

    /// Up to how many bytes the budget may be filled for a purpose.
    pub fn limit(&self, purpose: Purpose) -> u64 {
        self.part(purpose.part())
    }

    fn part(&self, part: u64) -> u64 {
        self.bytes_max / PARTS * part
    }

    /// The bytes that a draw takes which asks for so many. A single one never takes more than half of what its purpose may: else
    /// it would wait for ever.
    fn bounded(&self, bytes: u64, purpose: Purpose) -> u64 {
        bytes.min(self.limit(purpose) / 2)
    }

    /// Draws so many bytes; `None` where there is no room, or others wait for it. Of more than half of what the purpose may hold,
    /// that half is drawn.
    pub fn draw(self: &Arc<Self>, bytes: u64, purpose: Purpose) -> Option<Draw> {
        let bytes = self.bounded(bytes, purpose);
        let is_free = self.waiting[purpose as usize].load(Ordering::SeqCst) == 0;
        (is_free && self.take(bytes, purpose)).then(|| Draw::taken(self, bytes, purpose))
    }

    /// Draws so many bytes, as [`Self::draw`], and waits in its turn where there is no room. No thread waits with it.
    pub fn draw_in_turn(self: &Arc<Self>, bytes: u64, purpose: Purpose) -> Drawing {
        Drawing::new(Arc::clone(self), self.bounded(bytes, purpose), purpose)
    }

    /// Counts so many bytes that are taken already, whether there is room or not.
    pub fn count(self: &Arc<Self>, bytes: u64, purpose: Purpose) -> Draw {
        self.held.fetch_add(bytes as i64, Ordering::Relaxed);
        Draw::taken(self, bytes, purpose)
    }

    /// What an operation holds more than it told before; what all hold then.
    pub(crate) fn tell(&self, more: i64) -> u64 {
        let all = if more == 0 {
            self.held.load(Ordering::Relaxed)
        } else {
            let all = self.held.fetch_add(more, Ordering::SeqCst) + more;
            if more < 0 {
                self.serve_where_needed();
            }
            all
        };
        u64::try_from(all).unwrap_or(0)
    }

    /// Takes bytes where the purpose's part has room for them.
    fn take(&self, bytes: u64, purpose: Purpose) -> bool {
        let limit = self.limit(purpose) as i64;
        let taken = self.held.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |held| {
            held.checked_add(bytes as i64).filter(|held| *held <= limit)
        });
        taken.is_ok()
    }

    fn give_back(&self, bytes: u64) {
        // A draw that begins to wait is counted before it looks for room, and room is given before it is looked for draws that
        // wait: one of the two sees the other.
        self.held.fetch_sub(bytes as i64, Ordering::SeqCst);
        self.serve_where_needed();
    }

    fn serve_where_needed(&self) {
        if self.waiting.iter().any(|waiting| waiting.load(Ordering::SeqCst) > 0) {
            self.serve();
        }
    }

    /// Gives draws that wait what there is room for. Work comes first: it has begun.
    fn serve(&self) {
        let mut woken: Vec<Waker> = Vec::new();
        {
            let mut queue = self.queue.lock();
            for purpose in [Purpose::Work, Purpose::Message] {
                while let Some(bytes) = queue.first(purpose).filter(|bytes| self.take(*bytes, purpose)) {
                    woken.extend(queue.grant_first(purpose, bytes));
                    self.waiting[purpose as usize].fetch_sub(1, Ordering::SeqCst);
                }
            }
        }
        woken.into_iter().for_each(Waker::wake);
    }
}

/// Bytes of the budget; they go back when it is dropped.
#[derive(Debug)]
#[must_use]
pub struct Draw {
    memory: Arc<ServerMemory>,
    purpose: Purpose,
    bytes: u64,
}

impl Draw {
    /// One whose bytes have been taken.
    fn taken(memory: &Arc<ServerMemory>, bytes: u64, purpose: Purpose) -> Self {
        memory.drawn[purpose as usize].fetch_add(bytes, Ordering::Relaxed);
        Self { memory: Arc::clone(memory), purpose, bytes }
    }

    /// How many it has.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes so many more, if there is room and no other draw waits for it; whether it did.
    pub fn grow(&mut self, bytes: u64) -> bool {
        let more = self.memory.draw(bytes, self.purpose).filter(|more| more.bytes == bytes);
        let Some(more) = more else { return false };
        self.join(more);
        true
    }

    /// Takes over the bytes of another draw for the same purpose.
    pub fn join(&mut self, mut other: Self) {
        debug_assert_eq!(self.purpose, other.purpose);
        self.bytes += std::mem::take(&mut other.bytes);
    }

    /// Holds so many from now on: gives back the rest, or counts what has been taken beyond.
    pub fn set(&mut self, bytes: u64) {
        let drawn = &self.memory.drawn[self.purpose as usize];
        match bytes.checked_sub(self.bytes) {
            Some(more) => {
                drawn.fetch_add(more, Ordering::Relaxed);
                self.memory.held.fetch_add(more as i64, Ordering::Relaxed);
            }
            None => {
                drawn.fetch_sub(self.bytes - bytes, Ordering::Relaxed);
                self.memory.give_back(self.bytes - bytes);
            }
        }
        self.bytes = bytes;
    }
}

impl Drop for Draw {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.set(0);
        }
    }
}

#[cfg(all(test, not(feature = "models")))]
mod tests;
