//! The server's budget of memory: everything that grows with a client's wish draws from it.
//!
//! Operations are counted by the allocator and tell what they hold (`HeldMemory`). Memory that the server holds for clients
//! outside of operations, for a message that arrives or a reply that is not read, is a [`Draw`]. A draw is taken before the memory
//! is, waits in its turn where there is no room, and goes back when it is dropped.
//!
//! **Invariant:** a draw that is asked for never takes the budget beyond the part of its purpose, or beyond the whole budget where it is
//! assured. Only [`ServerMemory::count`] and [`Draw::set`] go beyond it: they count memory that is taken already.
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

/// The use of drawn memory. Each purpose may fill the budget up to its own part, so that work which has begun comes to its end
/// however many messages wait, and small commands run however much work there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A message from its first bytes until it is executed, and the beginning of a long command.
    Message,
    /// What an operation draws when it begins to hold much. It leaves room to those that have begun.
    Grant,
    /// Memory of operations, and memory that they fill for others: plans, keys, runs of a build, tables of a search.
    Work,
    /// A reply, from when it grows long until the client has taken it.
    Reply,
}

/// The parts are sixteenths of the budget.
const PARTS: u64 = 16;
/// Part that idle cursors may hold beside the budget.
const IDLE_PART: u64 = 4;
/// From here on the budget is short: a batch, which can take less, takes less.
const SHORT_PART: u64 = 11;
/// From here on the part of replies is short.
const SHORT_REPLIES_PART: u64 = 3;

impl Purpose {
    const ALL: [Self; 4] = [Self::Message, Self::Grant, Self::Work, Self::Reply];

    /// How many of the sixteen parts may be held, by all purposes together, after a draw for this one. The last part is left
    /// to operations too small to be refused, an administrator's among them.
    fn part(self) -> u64 {
        match self {
            Self::Message => 12,
            Self::Grant => 11,
            Self::Work | Self::Reply => 15,
        }
    }

    /// How many of them the draws for this purpose may hold.
    fn own_part(self) -> u64 {
        match self {
            Self::Message => 8,
            Self::Grant => 11,
            Self::Work => 15,
            Self::Reply => 4,
        }
    }

    /// How many of them the draws for this purpose get even where the budget is filled up to its part: operations that wait for
    /// grants hold a little each, and would otherwise wait for each other where they are many.
    fn assured_part(self) -> u64 {
        if self == Self::Grant { 2 } else { 0 }
    }

    /// How many of them a single draw takes at most: a larger one might never find room.
    fn one_part(self) -> u64 {
        match self {
            Self::Message => 8,
            // As much as messages leave to it.
            Self::Grant => 3,
            Self::Work => 7,
            Self::Reply => 4,
        }
    }
}

/// The budget of one server, in bytes.
#[derive(Debug)]
pub struct ServerMemory {
    bytes_max: u64,
    /// Bytes that all draws and all operations hold.
    held: AtomicI64,
    /// Bytes that operations hold whose cursors wait for their clients. It is no part of `held`: idle cursors have a share of their
    /// own, and take nothing from those that work.
    idle: AtomicI64,
    /// Bytes that the draws for each purpose hold.
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
            idle: AtomicI64::new(0),
            drawn: Default::default(),
            waiting: Default::default(),
            queue: Mutex::default(),
        }
    }

    /// The budget, in bytes.
    pub fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    /// Bytes that draws and operations hold.
    pub fn held(&self) -> u64 {
        u64::try_from(self.held.load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// Bytes that idle cursors hold.
    pub fn idle(&self) -> u64 {
        u64::try_from(self.idle.load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// Bytes that idle cursors may hold.
    pub fn idle_max(&self) -> u64 {
        self.part(IDLE_PART)
    }

    /// Notes that idle cursors hold so many bytes more, or less.
    pub(crate) fn note_idle(&self, more: i64) {
        if more != 0 {
            self.idle.fetch_add(more, Ordering::Relaxed);
        }
    }

    /// Bytes that operations may still take.
    pub(crate) fn left(&self) -> u64 {
        self.limit(Purpose::Work).saturating_sub(self.held())
    }

    /// Bytes that the draws for a purpose hold. For [`Purpose::Work`] without the bytes that the allocator counts of operations.
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

    /// Whether a draw waits for room, or soon will: a batch, which can take less, takes less.
    pub fn is_short(&self) -> bool {
        self.held() > self.part(SHORT_PART)
            || self.drawn(Purpose::Reply) > self.part(SHORT_REPLIES_PART)
            || self.waiting() > 0
    }

    /// Up to how many bytes the budget may be filled for a purpose.
    pub fn limit(&self, purpose: Purpose) -> u64 {
        self.part(purpose.part())
    }

    fn part(&self, part: u64) -> u64 {
        self.bytes_max / PARTS * part
    }

    /// Bytes that the draws for a purpose may hold.
    pub fn own_limit(&self, purpose: Purpose) -> u64 {
        self.part(purpose.own_part())
    }

    /// The bytes that a draw takes which asks for so many.
    fn bounded(&self, bytes: u64, purpose: Purpose) -> u64 {
        bytes.min(self.part(purpose.one_part()))
    }

    /// Draws so many bytes; `None` where there is no room, or others wait for it. A draw for more than the purpose allows a single
    /// one takes what is allowed.
    pub fn draw(self: &Arc<Self>, bytes: u64, purpose: Purpose) -> Option<Draw> {
        let bytes = self.bounded(bytes, purpose);
        let _queue = self.queue.lock();
        let is_first = self.waiting[purpose as usize].load(Ordering::SeqCst) == 0;
        (is_first && self.take(bytes, purpose)).then(|| Draw::taken(self, bytes, purpose))
    }

    /// Draws so many bytes, as [`Self::draw`], and waits in its turn where there is no room. No thread waits with it.
    pub fn draw_in_turn(self: &Arc<Self>, bytes: u64, purpose: Purpose) -> Drawing {
        Drawing::new(Arc::clone(self), self.bounded(bytes, purpose), purpose)
    }

    /// Counts so many bytes that are taken already, whether there is room or not.
    pub fn count(self: &Arc<Self>, bytes: u64, purpose: Purpose) -> Draw {
        self.drawn[purpose as usize].fetch_add(bytes, Ordering::Relaxed);
        self.held.fetch_add(bytes as i64, Ordering::Relaxed);
        Draw::taken(self, bytes, purpose)
    }

    /// Notes that something holds so many bytes more, or fewer, than it told before: operations, which the allocator counts, and
    /// transactions, which count themselves. Returns the bytes that are held in all.
    pub fn tell(&self, more: i64) -> u64 {
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

    /// Takes bytes where the purpose has room for them. Only under the queue's lock, so that draws do not hold up each other.
    fn take(&self, bytes: u64, purpose: Purpose) -> bool {
        let drawn = &self.drawn[purpose as usize];
        if drawn.load(Ordering::SeqCst) + bytes > self.own_limit(purpose) {
            return false;
        }
        let is_assured = drawn.load(Ordering::SeqCst) + bytes <= self.part(purpose.assured_part());
        let limit = if is_assured { self.bytes_max } else { self.limit(purpose) } as i64;
        let taken = self.held.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |held| {
            held.checked_add(bytes as i64).filter(|held| *held <= limit)
        });
        if taken.is_ok() {
            drawn.fetch_add(bytes, Ordering::SeqCst);
        }
        taken.is_ok()
    }

    fn give_back(&self, bytes: u64, purpose: Purpose) {
        // A draw that begins to wait is counted before it looks for room, and room is given before it is looked for draws that
        // wait: one of the two sees the other.
        self.drawn[purpose as usize].fetch_sub(bytes, Ordering::SeqCst);
        self.held.fetch_sub(bytes as i64, Ordering::SeqCst);
        self.serve_where_needed();
    }

    fn serve_where_needed(&self) {
        if self.waiting.iter().any(|waiting| waiting.load(Ordering::SeqCst) > 0) {
            self.serve();
        }
    }

    /// Gives waiting draws the bytes that there is room for. Work that has begun comes first.
    fn serve(&self) {
        let mut woken: Vec<Waker> = Vec::new();
        {
            let mut queue = self.queue.lock();
            for purpose in [Purpose::Work, Purpose::Reply, Purpose::Grant, Purpose::Message] {
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
        match bytes.checked_sub(self.bytes) {
            Some(more) => return self.join(self.memory.count(more, self.purpose)),
            None => self.memory.give_back(self.bytes - bytes, self.purpose),
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
