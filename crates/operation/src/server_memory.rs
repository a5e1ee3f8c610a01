//! The server's memory budget. All memory whose size depends on a client's request draws from it.
//!
//! The allocator counts the memory of operations, which report it (`HeldMemory`). Memory held for clients outside of
//! operations, such as an arriving message or an unread reply, is a [`Draw`]. A draw is taken before the memory is
//! allocated, waits in its turn while there is no room, and is given back when it is dropped.
//!
//! **Invariant:** a requested draw never takes the budget beyond the part of its purpose, or beyond the whole budget
//! where it is assured. Only [`ServerMemory::count`] and [`Draw::set`] go beyond it: they count memory that is already
//! taken.
//! **Invariant:** draws of one purpose are served in the order of their requests, and the first draw never waits while
//! there is room for it.

mod drawing;
#[cfg(all(test, feature = "models"))]
mod model;
mod queue;

pub use drawing::Drawing;

use bunko_sync::Mutex;
use bunko_sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use queue::Queue;
use std::sync::Arc;
use std::task::Waker;

/// The use of drawn memory. Each purpose may fill the budget up to its own part, so that started work can finish
/// however many messages wait, and small commands can run however much work there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A message from its first bytes until it is executed, and the beginning of a long command.
    Message,
    /// The first large memory of an operation. It leaves room for operations that already work.
    Grant,
    /// Memory of operations, and memory that they fill for others: plans, keys, runs of an index build, tables of a
    /// search.
    Work,
    /// A reply, from when it grows long until the client has taken it.
    Reply,
}

/// The number of parts that the budget is divided into.
const PARTS: u64 = 16;
/// Part that idle cursors may hold, beside the budget.
const IDLE_PART: u64 = 4;
/// Above this part of the budget, memory is short: batches, which can do with less, take less.
const SHORT_PART: u64 = 11;
/// Above this part the memory of replies is short.
const SHORT_REPLIES_PART: u64 = 3;

impl Purpose {
    const ALL: [Self; 4] = [Self::Message, Self::Grant, Self::Work, Self::Reply];

    /// The part that all purposes together may hold after a draw for this purpose, in sixteenths. The last sixteenth is
    /// left to operations too small to be refused, such as an administrator's.
    fn part(self) -> u64 {
        match self {
            Self::Message => 12,
            Self::Grant => 11,
            Self::Work | Self::Reply => 15,
        }
    }

    /// The part that draws for this purpose may hold, in sixteenths.
    fn own_part(self) -> u64 {
        match self {
            Self::Message => 8,
            Self::Grant => 11,
            Self::Work => 15,
            Self::Reply => 4,
        }
    }

    /// The part that draws for this purpose get even if the budget is full up to their limit, in sixteenths. Many
    /// operations that wait for grants hold a little each, and without this part they would wait for each other.
    fn assured_part(self) -> u64 {
        if self == Self::Grant { 2 } else { 0 }
    }

    /// The most that a single draw takes, in sixteenths: a larger one might never find room.
    fn one_part(self) -> u64 {
        match self {
            Self::Message => 8,
            // Messages leave this much for grants.
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
    /// Bytes held by all draws and all operations.
    held: AtomicI64,
    /// Bytes of operations whose cursors wait for their clients. They are not in `held`: idle cursors have a share of
    /// their own, and take nothing from working operations.
    idle: AtomicI64,
    /// Bytes held by the draws of each purpose.
    drawn: [AtomicU64; Purpose::ALL.len()],
    /// Number of waiting draws of each purpose.
    waiting: [AtomicUsize; Purpose::ALL.len()],
    queue: Mutex<Queue>,
}

impl Default for ServerMemory {
    /// A budget without a limit.
    fn default() -> Self {
        // A quarter of the largest number, so that sums of a few budgets still fit.
        Self::of(i64::MAX as u64 / 4)
    }
}

impl ServerMemory {
    /// A budget of `bytes_max` bytes.
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

    /// Bytes held by draws and operations.
    pub fn held(&self) -> u64 {
        u64::try_from(self.held.load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// Bytes held by idle cursors.
    pub fn idle(&self) -> u64 {
        u64::try_from(self.idle.load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// Bytes that idle cursors may hold.
    pub fn idle_max(&self) -> u64 {
        self.part(IDLE_PART)
    }

    /// Notes a change of the bytes held by idle cursors.
    pub(crate) fn note_idle(&self, more: i64) {
        if more != 0 {
            self.idle.fetch_add(more, Ordering::Relaxed);
        }
    }

    /// Bytes that operations may still take.
    pub(crate) fn left(&self) -> u64 {
        self.limit(Purpose::Work).saturating_sub(self.held())
    }

    /// Bytes held by the draws of a purpose. For [`Purpose::Work`], without the memory of operations that the allocator
    /// counts.
    pub fn drawn(&self, purpose: Purpose) -> u64 {
        self.drawn[purpose as usize].load(Ordering::Relaxed)
    }

    /// Number of draws that wait for room.
    pub fn waiting(&self) -> usize {
        self.waiting.iter().map(|waiting| waiting.load(Ordering::Relaxed)).sum()
    }

    /// Number of draws of a purpose that wait for room.
    pub fn waiting_for(&self, purpose: Purpose) -> usize {
        self.waiting[purpose as usize].load(Ordering::Relaxed)
    }

    /// Whether a draw waits for room, or soon will: a batch, which can take less memory, takes less.
    pub fn is_short(&self) -> bool {
        self.held() > self.part(SHORT_PART)
            || self.drawn(Purpose::Reply) > self.part(SHORT_REPLIES_PART)
            || self.waiting() > 0
    }

    /// The level up to which a purpose may fill the budget, in bytes.
    pub fn limit(&self, purpose: Purpose) -> u64 {
        self.part(purpose.part())
    }

    fn part(&self, part: u64) -> u64 {
        self.bytes_max / PARTS * part
    }

    /// Bytes that the draws of a purpose may hold.
    pub fn own_limit(&self, purpose: Purpose) -> u64 {
        self.part(purpose.own_part())
    }

    /// The bytes that a draw of `bytes` really takes.
    fn bounded(&self, bytes: u64, purpose: Purpose) -> u64 {
        bytes.min(self.part(purpose.one_part()))
    }

    /// Draws bytes; `None` if there is no room, or if earlier draws wait for it. A draw that exceeds the limit of a
    /// single draw takes that limit.
    pub fn draw(self: &Arc<Self>, bytes: u64, purpose: Purpose) -> Option<Draw> {
        let bytes = self.bounded(bytes, purpose);
        let _queue = self.queue.lock();
        let is_first = self.waiting[purpose as usize].load(Ordering::SeqCst) == 0;
        (is_first && self.take(bytes, purpose)).then(|| Draw::taken(self, bytes, purpose))
    }

    /// Draws bytes as [`Self::draw`], but waits in its turn while there is no room. The wait blocks no thread.
    pub fn draw_in_turn(self: &Arc<Self>, bytes: u64, purpose: Purpose) -> Drawing {
        Drawing::new(Arc::clone(self), self.bounded(bytes, purpose), purpose)
    }

    /// Counts bytes that are already taken, even without room.
    pub fn count(self: &Arc<Self>, bytes: u64, purpose: Purpose) -> Draw {
        self.drawn[purpose as usize].fetch_add(bytes, Ordering::Relaxed);
        self.held.fetch_add(bytes as i64, Ordering::Relaxed);
        Draw::taken(self, bytes, purpose)
    }

    /// Reports a change of memory: of operations, which the allocator counts, and of transactions, which count
    /// themselves. Returns the bytes held in all.
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

    /// Takes bytes if the purpose has room; returns whether it did. The caller holds the queue's lock, so that draws do
    /// not disturb each other.
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
        // A draw that begins to wait is counted before it looks for room, and room is given back before the thread
        // looks for waiting draws. So one of the two threads sees the other.
        self.drawn[purpose as usize].fetch_sub(bytes, Ordering::SeqCst);
        self.held.fetch_sub(bytes as i64, Ordering::SeqCst);
        self.serve_where_needed();
    }

    fn serve_where_needed(&self) {
        if self.waiting.iter().any(|waiting| waiting.load(Ordering::SeqCst) > 0) {
            self.serve();
        }
    }

    /// Serves waiting draws while there is room. Started work comes first.
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

/// Bytes of the budget; dropping it gives them back.
#[derive(Debug)]
#[must_use]
pub struct Draw {
    memory: Arc<ServerMemory>,
    purpose: Purpose,
    bytes: u64,
}

impl Draw {
    /// A draw whose bytes have been taken.
    fn taken(memory: &Arc<ServerMemory>, bytes: u64, purpose: Purpose) -> Self {
        Self { memory: Arc::clone(memory), purpose, bytes }
    }

    /// Number of bytes drawn.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes more bytes if there is room and no draw waits for it. Returns whether it did.
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

    /// Changes the number of bytes drawn: gives back the rest, or counts bytes that are already taken.
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
